#pragma once

#include <cstdint>

#include <speedo/base/clock.hpp>

namespace speedo {

// How fast two counters grow, iterations and images: lately and since the start.
// Thread safety: one thread at a time.
class RateMeter {
 public:
  struct Rates {
    double iterations_per_second = 0.0;
    double images_per_second = 0.0;
  };

  void start(Instant now, std::uint64_t iterations, std::uint64_t images);
  bool started() const { return started_; }
  void update(Instant now, std::uint64_t iterations, std::uint64_t images);

  Rates recent() const { return between(older_, last_); }  // over the last one to two windows
  Rates overall() const { return between(first_, last_); }
  double seconds() const;  // from the start to the last update

 private:
  struct Mark {
    Instant at{};
    std::uint64_t iterations = 0, images = 0;
  };
  static Rates between(const Mark& from, const Mark& to);

  bool started_ = false;
  Mark first_, older_, newer_, last_;  // older_ and newer_ are one window apart
};

}  // namespace speedo
