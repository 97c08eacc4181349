#pragma once

#include <string>

#include "base/log.hpp"

namespace speedo {

// As write_log(), which shows control characters but the tab as '?', but of a text of several
// lines, whose ends are kept. Requires: no name in it brings an end of its own, as in texts that
// protobuf has made.
void write_log_lines(LogLevel level, const char* file, int line, const std::string& text);

}  // namespace speedo

#define SPEEDO_INFO_LINES(...)                                                                  \
  (::speedo::logs(::speedo::LogLevel::kInfo)                                                    \
       ? ::speedo::write_log_lines(::speedo::LogLevel::kInfo, __FILE__, __LINE__,               \
                                   ::fmt::format(__VA_ARGS__))                                  \
       : void())
