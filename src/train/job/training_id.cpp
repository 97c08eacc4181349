#include <speedo/train/training_id.hpp>

#include <fmt/format.h>

namespace speedo {

std::string short_name(const TrainingId& id) {
  return id.is_known() ? fmt::format("{:016x}", id.high) : "unknown";
}

}  // namespace speedo
