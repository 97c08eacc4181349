#pragma once

#include <string>

#include <speedo/base/remote_files.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// An error of a file that was named so: one that speaks of the copy alone says where it came from.
inline Error from_uri(Error error, const std::string& name) {
  const std::string shown = shown_name(name);
  if (is_uri(name) && error.message.find(shown) == std::string::npos) {
    error.message += " (it came from '" + shown + "')";
  }
  return error;
}

}  // namespace speedo
