#pragma once

#include <functional>
#include <string>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

namespace speedo {

// Log lines carry glog's prefix, as Caffe's do, and go to standard error:
//   I20261121 03:30:20.951838 32575 solver.cpp:45] text
// glog before 0.6 wrote no year ("I1121"), and Caffe's parse_log.py reads nothing else.
enum class LogFormat { kGlogWithYear, kGlog };
void set_up_logging(LogFormat format = LogFormat::kGlogWithYear);

enum class LogLevel { kDebug, kInfo, kWarning };
// Lines below this level are dropped. Requires: set_up_logging() before.
void set_log_level(LogLevel level);

// Calls `before` and `after` around every line that is written, so that something else can share
// the terminal. Both come on the thread that logs and must not log. Requires: set_up_logging()
// before, and that nothing logs meanwhile.
void set_log_hooks(std::function<void()> before, std::function<void()> after);

}  // namespace speedo

// The five macros of the house include the log level ones: file and line come from the caller.
#define SPEEDO_LOG(level, ...)                                                             \
  ::spdlog::default_logger_raw()->log(::spdlog::source_loc{__FILE__, __LINE__, ""}, (level), \
                                      __VA_ARGS__)
#define SPEEDO_INFO(...) SPEEDO_LOG(::spdlog::level::info, __VA_ARGS__)
#define SPEEDO_WARN(...) SPEEDO_LOG(::spdlog::level::warn, __VA_ARGS__)
#define SPEEDO_ERROR(...) SPEEDO_LOG(::spdlog::level::err, __VA_ARGS__)
