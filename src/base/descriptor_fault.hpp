#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace speedo {

inline bool is_descriptor_shortage(int number) { return number == EMFILE || number == ENFILE; }

// What to do where the system gives no descriptor; else what the system says.
inline std::string descriptor_fault(int number) {
  if (number == EMFILE) {
    return "this process has no descriptor left for another connection: raise its limit (ulimit "
           "-n)";
  }
  if (number == ENFILE) {
    return "the system has no descriptor left for another connection: raise fs.file-max";
  }
  return std::strerror(number);
}

}  // namespace speedo
