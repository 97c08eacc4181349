#pragma once

#include <span>
#include <string>
#include <vector>

namespace speedo::golden {

// Another order of summation moves Caffe's own results by up to 1.5e-6 of a dataset's largest
// value; this leaves room for that and finds every real fault.
inline constexpr double kTolerance = 1e-5;
inline constexpr double kExact = 0.0;

// Collects what one case compares and remembers the worst.
class Comparison {
 public:
  // max |got - reference| must be within tolerance x max |reference|.
  void values(const std::string& name, std::span<const float> got,
              std::span<const float> reference, double tolerance = kTolerance);
  void require(bool condition, const std::string& what);

  bool passed() const { return faults_.empty(); }
  // "max 3.1e-07 at bwd/data", or the worst fault and how many more there are.
  std::string summary() const;

 private:
  void note_fault(std::string text, double error);

  std::string worst_name_;
  double worst_error_ = 0.0;
  std::vector<std::string> faults_;  // the worst first
  double worst_fault_ = 0.0;
};

}  // namespace speedo::golden
