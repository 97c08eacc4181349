#include <speedo/store/blob_store.hpp>

namespace speedo {

std::string job_key() { return "job"; }
std::string probe_key() { return "probe"; }
std::string ended_key() { return "ended"; }

}  // namespace speedo
