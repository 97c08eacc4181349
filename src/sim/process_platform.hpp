#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/platform.hpp>
#include <speedo/base/random.hpp>

#include "sim/fiber.hpp"
#include "sim/process.hpp"

namespace speedo::sim {

// A simulated process' machine: production code runs on it, with fibers for threads, in virtual
// time. What waits on a process that dies is unwound by an exception of a type that nobody else
// throws or catches.
// Thread safety: one thread.
class ProcessPlatform : public Platform {
 public:
  struct Setting {
    std::string name;  // of the process
    std::uint64_t seed = 0;
    std::function<bool(std::string_view name)> is_dead = {};  // of other processes; empty: none is
  };
  // The process outlives it, in its own life or dead.
  ProcessPlatform(EventQueue& queue, Process& process, Setting setting);
  // Requires: the process is dead, or its threads are over.
  ~ProcessPlatform() override;

  const Clock& clock() const override { return clock_; }
  std::uint64_t wall_clock_microseconds() const override;
  std::uint64_t random_bits() override { return random_.next(); }
  std::string process_name() const override { return setting_.name; }
  bool is_known_dead(std::string_view name) const override {
    return setting_.is_dead && setting_.is_dead(name);
  }
  std::unique_ptr<Monitor> make_monitor() override;
  std::unique_ptr<Thread> start_thread(const char* name, std::function<void()> work) override;
  void sleep(Instant time) override;
  // The same for what destructors may call: returns early if the process dies. Outside of the
  // platform's threads no time passes.
  void pause(Instant time);
  // Unwinds the thread that calls, if its process is dead and that has not begun.
  void leave_if_dead() const;

  Process& process() { return process_; }
  // Of a dead process: ends all threads that have begun.
  void unwind();

 private:
  struct Strand;
  class SimulatedMonitor;
  class SimulatedThread;
  // Of a wait that ends once.
  using Wake = std::shared_ptr<Strand*>;
  class ProcessClock : public Clock {
   public:
    explicit ProcessClock(const Process& process) : process_(process) {}
    Instant now() const override { return process_.now(); }

   private:
    const Process& process_;
  };

  Strand* current() const;
  void wake_after(Instant delay, const Wake& wake);
  // Stops the current thread until `wake` is used; throws if the process is dead then.
  void wait_for(const Wake& wake);
  void join(const std::shared_ptr<Strand>& strand);

  EventQueue& queue_;
  Process& process_;
  const Setting setting_;
  const ProcessClock clock_;
  Random random_;
  std::vector<std::shared_ptr<Strand>> strands_;  // that are not over
};

}  // namespace speedo::sim
