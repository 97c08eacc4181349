#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/world.hpp"

namespace speedo::sim {

// Everything that happens in a run, in order: hashed, and the last part kept for people. Two runs
// of one seed have the same hash.
class EventLog {
 public:
  // `each`, if given, gets every line as it happens.
  explicit EventLog(const EventQueue& queue, std::function<void(const std::string&)> each = {})
      : queue_(queue), each_(std::move(each)) {}

  void add(const MasterNode& node, const MasterEvent& event);
  void add(const MasterNode& node, const MasterCommand& command);
  void add(const WorkerNode& node, const WorkerEvent& event);
  void add(const WorkerNode& node, const WorkerCommand& command);
  // A fault, or another thing outside the sessions. `what` is a literal.
  void add(const char* what, std::uint64_t a = 0, std::uint64_t b = 0);

  std::uint64_t hash() const { return hash_; }
  std::uint64_t count() const { return count_; }
  std::vector<std::string> last() const;  // oldest first, kKept at most
  static constexpr std::size_t kKept = 50;

 private:
  struct Entry {
    Instant when{0};
    char side = ' ';  // M, W: of a session; *: of the world
    bool command = false;
    std::uint64_t node = 0;
    const char* what = "";
    std::uint64_t values[4] = {};
  };
  void add(const Entry& entry);
  static std::string to_text(const Entry& entry);

  const EventQueue& queue_;
  const std::function<void(const std::string&)> each_;
  std::uint64_t hash_ = 0, count_ = 0;
  std::vector<Entry> kept_;
};

}  // namespace speedo::sim
