#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>

namespace speedo {

// What a job has left in its store, or has there while it runs.
struct JobRemains {
  std::optional<std::uint64_t> iteration;  // of the weights; nothing if there are none
  std::uint64_t floats = 0;                // of them
  bool is_over = false;                    // its last master said so
};

// Errors: those of the store; kMismatch for weights that it cannot read, as of a job on more
// servers than these, saying what to do.
Result<JobRemains> look_at_remains(ParameterStore& store);

// Removes all records and blobs of the job `name`, as its newest master: one that stands still or
// is cut off writes nothing afterwards. Its term stays, by which that one is known. A lease of one
// that does not renew it is waited for. Errors: kSuperseded if the job has a master; kUnavailable
// if `poll_stop` says so meanwhile; those of the store.
Result<void> remove_remains(const std::shared_ptr<ParameterStore>& store, const std::string& name,
                            std::function<std::optional<std::string>()> poll_stop);

}  // namespace speedo
