#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo::test {

// All that is logged while it lives.
class LogCapture {
 public:
  LogCapture() : stderr_(::dup(STDERR_FILENO)) {
    set_up_logging();
    const int file = ::open((folder_ / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  ~LogCapture() {
    ::dup2(stderr_, STDERR_FILENO);
    ::close(stderr_);
  }
  bool has(const std::string& part) const { return text().find(part) != std::string::npos; }
  std::string text() const { return read_file(folder_ / "log").value(); }

 private:
  TempDir folder_;
  int stderr_;
};

}  // namespace speedo::test
