#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "gate/credentials.hpp"

namespace speedo {

// Connections that have not proved anything yet, and such as have and are not done: the oldest
// makes room for a newer one. A peer proves who it is with the first bytes that it sends, so that a
// real one is among the oldest for the time of one answer only.
struct GateLimits {
  std::size_t unproved = 64;
  std::size_t unproved_of_address = 16;
  std::size_t shaking = 256;
};
// Less where this process may have few descriptors: an eighth and a fourth of them.
GateLimits limits_here();

// When files were last changed, in what they say or in who may read it. Pipes are read once.
class FileStamps {
 public:
  FileStamps() = default;
  explicit FileStamps(const GateFiles& files);
  bool operator==(const FileStamps&) const = default;
  // The first that is there and is no file: to read a pipe may take for ever. Empty: none.
  const std::string& not_a_file() const { return not_a_file_; }

 private:
  std::vector<std::string> stamps_;
  std::string not_a_file_;
};

}  // namespace speedo
