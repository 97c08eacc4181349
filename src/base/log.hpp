#pragma once

#include <string>

#include <fmt/format.h>

namespace speedo {

// Log lines carry glog's prefix, as Caffe's do, and go to standard_error() (patient_output.hpp):
//   I20261121 03:30:20.951838 32575 solver.cpp:45] text
// glog before 0.6 wrote no year ("I1121"), and Caffe's parse_log.py reads nothing else.
enum class LogFormat { kGlogWithYear, kGlog };
void set_up_logging(LogFormat format = LogFormat::kGlogWithYear);

enum class LogLevel { kDebug, kInfo, kWarning, kError, kNothing };
// Lines below this level are dropped.
void set_log_level(LogLevel level);
// Whether lines of this level are written.
bool logs(LogLevel level);
// Writes a line that is attributed to a place in a source.
void write_log(LogLevel level, const char* file, int line, const std::string& text);

}  // namespace speedo

// Macros, as file and line come from the caller. The text is made only if the line is written.
#define SPEEDO_LOG(level, ...)                                                            \
  (::speedo::logs(level)                                                                  \
       ? ::speedo::write_log((level), __FILE__, __LINE__, ::fmt::format(__VA_ARGS__))     \
       : void())
#define SPEEDO_DEBUG(...) SPEEDO_LOG(::speedo::LogLevel::kDebug, __VA_ARGS__)
#define SPEEDO_INFO(...) SPEEDO_LOG(::speedo::LogLevel::kInfo, __VA_ARGS__)
#define SPEEDO_WARN(...) SPEEDO_LOG(::speedo::LogLevel::kWarning, __VA_ARGS__)
#define SPEEDO_ERROR(...) SPEEDO_LOG(::speedo::LogLevel::kError, __VA_ARGS__)
