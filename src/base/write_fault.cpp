#include "base/write_fault.hpp"

#include <cerrno>
#include <cstring>

namespace speedo {

namespace {

constexpr const char* kSmallerFiles =
    " (there is a limit on the size of files, as ulimit -f sets it: raise it)";
constexpr const char* kShorterNames = " (give it a shorter name)";

}  // namespace

std::string write_fault(int reason) {
  std::string text = std::strerror(reason);
  if (reason == EFBIG) text += kSmallerFiles;
  if (reason == ENAMETOOLONG) text += kShorterNames;
  return text;
}

bool waiting_may_help(const Error& error) {
  return error.message.find(kSmallerFiles) == std::string::npos &&
         error.message.find(kShorterNames) == std::string::npos;
}

}  // namespace speedo
