#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace speedo::test {

// What doubles of CUDA and its libraries found wrong with the calls that they were given, and how
// often some were made. Any thread.
class CallLog {
 public:
  void report(std::string violation) {
    const std::lock_guard lock(mutex_);
    violations_.push_back(std::move(violation));
  }
  std::vector<std::string> violations() const {
    const std::lock_guard lock(mutex_);
    return violations_;
  }
  // How often graphs were launched, and a kernel of that name queued by itself or in a recording.
  void count_graph() {
    const std::lock_guard lock(mutex_);
    ++graphs_;
  }
  int graphs() const {
    const std::lock_guard lock(mutex_);
    return graphs_;
  }
  void count_kernel(const char* name) {
    const std::lock_guard lock(mutex_);
    ++kernels_[name];
  }
  int kernels(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = kernels_.find(name);
    return found == kernels_.end() ? 0 : found->second;
  }
  // How often something was copied from the device to the host.
  void count_download() {
    const std::lock_guard lock(mutex_);
    ++downloads_;
  }
  int downloads() const {
    const std::lock_guard lock(mutex_);
    return downloads_;
  }
  // How often the device was given up.
  void count_release() {
    const std::lock_guard lock(mutex_);
    ++releases_;
  }
  int releases() const {
    const std::lock_guard lock(mutex_);
    return releases_;
  }
  // Whether one of them has the word.
  bool has(const std::string& word) const {
    for (const std::string& each : violations()) {
      if (each.find(word) != std::string::npos) return true;
    }
    return false;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> violations_;
  int graphs_ = 0, downloads_ = 0, releases_ = 0;
  std::map<std::string, int> kernels_;
};

}  // namespace speedo::test
