#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/clock.hpp>

namespace speedo {

// What came to a gate since it was made.
struct GateCounts {
  std::uint64_t connections = 0;
  std::uint64_t admitted = 0;
  std::uint64_t strangers = 0;  // spoke another protocol, or nothing, or went
  std::uint64_t refused = 0;    // a wrong token, certificate, role or version
  std::uint64_t late = 0;       // took too long
  std::uint64_t displaced = 0;  // made room for newer ones
  std::uint64_t cut = 0;        // were let in, and then said what they may not

  std::uint64_t turned_away() const { return strangers + refused + late + displaced + cut; }
};
std::string to_text(const GateCounts& counts);

// Which of the lines about peers that come are written: few of many.
// Thread safety: one thread.
class AuditPacer {
 public:
  static constexpr int kLinesMax = 10;  // in each kWindow
  static constexpr std::chrono::seconds kWindow{10};

  // Whether to write this one; then how many before it were not.
  std::optional<std::uint64_t> admit(Instant now);

 private:
  Instant window_{};
  int lines_ = 0;
  bool begun_ = false;
  std::uint64_t left_out_ = 0;
};

}  // namespace speedo
