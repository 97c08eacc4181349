#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace speedo::test {

// What doubles of CUDA's libraries found wrong with the calls that they were given. Any thread.
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
};

}  // namespace speedo::test
