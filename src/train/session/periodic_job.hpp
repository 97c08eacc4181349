#pragma once

#include <cstdint>
#include <optional>

namespace speedo {

// A test or a snapshot that falls due at every multiple of an interval, one at a time. One that
// falls due while another is under way waits, and merges wait with it: it belongs to the weights of
// just that iteration.
//
// Invariant: no iteration is started twice, unless it failed in between.
class PeriodicJob {
 public:
  // An interval of 0 never falls due by itself.
  explicit PeriodicJob(std::uint64_t interval) : interval_(interval) {}

  void set_interval(std::uint64_t interval) { interval_ = interval; }
  void reach(std::uint64_t iteration) {
    if (interval_ != 0 && iteration % interval_ == 0) request(iteration);
  }
  void request(std::uint64_t iteration) {
    if (started_ != iteration) due_ = iteration;
  }
  void cancel() { due_.reset(); }

  bool due() const { return due_.has_value(); }
  bool due(std::uint64_t iteration) const { return due_ == iteration; }
  bool under_way() const { return under_way_.has_value(); }
  bool is_done(std::uint64_t iteration) const { return started_ == iteration && !under_way_; }

  // The iteration to start now, if one is due and none is under way.
  std::optional<std::uint64_t> start() {
    if (!due_ || under_way_) return std::nullopt;
    started_ = under_way_ = due_;
    due_.reset();
    return under_way_;
  }
  // Ends the one under way and says which it was; none if nothing was under way.
  std::optional<std::uint64_t> done() {
    const auto iteration = under_way_;
    under_way_.reset();
    return iteration;
  }
  std::optional<std::uint64_t> failed() {
    started_.reset();
    return done();
  }

 private:
  std::uint64_t interval_;
  std::optional<std::uint64_t> due_, under_way_, started_;
};

}  // namespace speedo
