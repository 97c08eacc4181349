#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// How fast workers are, in samples a microsecond, from the durations that they report with their
// runs. A worker is known from the third report of its incarnation on; the first run, which still
// sets things up, is not counted. Speeds are kept by name for workers that come back, under this
// master or, by save() and restore(), under the next.
class WorkerSpeeds {
 public:
  void joined(WorkerId worker, const std::string& name);
  void left(WorkerId worker);
  // Of a failed run: no samples.
  void reported(WorkerId worker, std::uint64_t samples, std::uint64_t duration_us);
  // Known, or heard often enough and yet without a speed because all its runs failed.
  bool settled(WorkerId worker) const;
  // Of the live workers known.
  std::map<WorkerId, double> known() const;
  // Replaces what is known by what was measured since it was last called.
  void renew();

  std::string save() const;
  // Requires: nobody joined yet. Error: kCorrupt, nothing changed.
  Result<void> restore(std::string_view text);

 private:
  struct Measurement {
    std::string name;
    double speed = 0.0;  // 0: not known
    std::uint64_t reports = 0, samples = 0, duration_us = 0;
  };
  void keep(const std::string& name, double speed);

  std::map<WorkerId, Measurement> live_;
  std::map<std::string, double> kept_;  // of names that are not live
};

}  // namespace speedo
