#include <google/protobuf/stubs/logging.h>

#include "base/log.hpp"
#include "fuzz/fuzz_target.hpp"

namespace speedo::fuzz {

void be_silent() {
  set_log_level(LogLevel::kNothing);
  google::protobuf::SetLogHandler(nullptr);
}

}  // namespace speedo::fuzz
