#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>

namespace speedo {

// A store in this process' memory, with the keys and bytes of the one in Redis. For tests, the
// simulator and programs of one process.
// Requires: `job` is valid, see check_job_name().
std::shared_ptr<ParameterStore> make_memory_store(const std::string& job = "memory");

// A job's name is part of its keys: letters, digits, '-', '_', '.', at most so many. Error: kUsage.
inline constexpr std::size_t kJobNameMax = 100;
Result<void> check_job_name(const std::string& job);

}  // namespace speedo
