#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace speedo::test {

// What the programs of one job show each other at the gate, and its files. Which of them is drawn
// from fresh_seed(), or said by SPEEDO_TEST_GATE: "open", "token" or "certificates".
class DrawnGate {
 public:
  // In `folder`, which must be there for as long as programs are started.
  static DrawnGate make(const std::filesystem::path& folder);
  // Nothing is shown but what a test says itself.
  static DrawnGate none() { return {}; }

  const std::vector<std::string>& master_flags() const { return master_flags_; }
  const std::vector<std::string>& worker_flags() const { return worker_flags_; }

 private:
  std::vector<std::string> master_flags_, worker_flags_;
};

// Runs `speedo WORDS`, which must succeed; its output goes beside `log`.
void run_speedo(const std::vector<std::string>& words, const std::filesystem::path& log);

// What shows a certificate that `speedo cert` made in the folder `authority`.
std::vector<std::string> certificate_flags(const std::string& authority, const std::string& name);

}  // namespace speedo::test
