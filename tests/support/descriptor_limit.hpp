#pragma once

#include <stdexcept>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>

#include "base/descriptor.hpp"

namespace speedo::test {

// As long as it lives this process gets no more than `spare` further descriptors: EMFILE.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(int spare = 0) {
    int first_missing = -1;
    std::vector<Descriptor> free;
    for (int i = 0; i <= spare; ++i) {
      free.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      first_missing = free.back().get();
    }
    if (first_missing < 0 || ::getrlimit(RLIMIT_NOFILE, &before_) != 0) {
      throw std::runtime_error("no descriptor is left already");
    }
    rlimit less = before_;
    less.rlim_cur = static_cast<rlim_t>(first_missing);
    ::setrlimit(RLIMIT_NOFILE, &less);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace speedo::test
