#pragma once

#include <string>
#include <utility>

namespace speedo::sim {

// What the checkers found: the first violation counts, what follows is mostly its consequence.
class Violations {
 public:
  void report(std::string text) {
    if (first_.empty()) first_ = std::move(text);
  }
  void expect(bool holds, const char* otherwise) {
    if (!holds) report(otherwise);
  }
  bool any() const { return !first_.empty(); }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

}  // namespace speedo::sim
