#include "sim/process_platform.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::sim {
namespace {

// Virtual time begins here for clocks on walls: later than any number that a test would use.
constexpr std::uint64_t kWallClockStart = 1'700'000'000'000'000;

// Thrown where a thread of a dead process waits. Not a std::exception: nobody may keep it alive.
struct ProcessDied {};

}  // namespace

// A thread of the process.
struct ProcessPlatform::Strand {
  explicit Strand(std::function<void()> work) : fiber(std::move(work)) {}
  Fiber fiber;
  bool unwinding = false;
  std::vector<Wake> joining;
};

class ProcessPlatform::SimulatedMonitor : public Monitor {
 public:
  explicit SimulatedMonitor(ProcessPlatform& platform) : platform_(platform) {}
  // One thread runs at a time, and none may wait elsewhere while it has a lock.
  void lock() override {
    SPEEDO_ASSERT(!locked_);
    locked_ = true;
  }
  void unlock() override {
    SPEEDO_ASSERT(locked_);
    locked_ = false;
  }
  void notify_all() override {
    for (const Wake& each : std::exchange(waiting_, {})) platform_.wake_after(Instant{0}, each);
  }
  void wait(std::optional<Instant> deadline) override {
    SPEEDO_ASSERT(locked_);
    const auto wake = std::make_shared<Strand*>(platform_.current());
    waiting_.push_back(wake);
    if (deadline) {
      const Instant left = *deadline - platform_.clock_.now();
      platform_.wake_after(std::max(left, Instant{0}), wake);
    }
    const Relock relock(*this);
    platform_.wait_for(wake);
  }

 private:
  // Unlocked in between, and locked again whatever happens.
  struct Relock {
    explicit Relock(SimulatedMonitor& of) : monitor(of) { monitor.unlock(); }
    ~Relock() { monitor.lock(); }
    Relock(const Relock&) = delete;
    Relock& operator=(const Relock&) = delete;
    SimulatedMonitor& monitor;
  };
  ProcessPlatform& platform_;
  bool locked_ = false;
  std::vector<Wake> waiting_;
};

class ProcessPlatform::SimulatedThread : public Thread {
 public:
  SimulatedThread(ProcessPlatform& platform, std::shared_ptr<Strand> strand)
      : platform_(platform), strand_(std::move(strand)) {}
  ~SimulatedThread() override { platform_.join(strand_); }
  SimulatedThread(const SimulatedThread&) = delete;
  SimulatedThread& operator=(const SimulatedThread&) = delete;

 private:
  ProcessPlatform& platform_;
  const std::shared_ptr<Strand> strand_;
};

ProcessPlatform::ProcessPlatform(EventQueue& queue, Process& process, Setting setting)
    : queue_(queue),
      process_(process),
      setting_(std::move(setting)),
      clock_(process),
      random_(setting_.seed) {}

ProcessPlatform::~ProcessPlatform() {
  if (!strands_.empty()) unwind();
}

std::uint64_t ProcessPlatform::wall_clock_microseconds() const {
  return kWallClockStart + static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(queue_.now()).count());
}

std::unique_ptr<Monitor> ProcessPlatform::make_monitor() {
  return std::make_unique<SimulatedMonitor>(*this);
}

std::unique_ptr<Thread> ProcessPlatform::start_thread(const char* /*name*/,
                                                      std::function<void()> work) {
  auto body = [this, work = std::move(work)] {
    try {
      work();
    } catch (const ProcessDied&) {
    }
    const auto self = std::ranges::find_if(strands_, [](const auto& each) {
      return &each->fiber == Fiber::current();
    });
    SPEEDO_ASSERT(self != strands_.end());
    for (const Wake& each : std::exchange((*self)->joining, {})) wake_after(Instant{0}, each);
  };
  auto strand = std::make_shared<Strand>(std::move(body));
  strands_.push_back(strand);
  wake_after(Instant{0}, std::make_shared<Strand*>(strand.get()));
  return std::make_unique<SimulatedThread>(*this, std::move(strand));
}

ProcessPlatform::Strand* ProcessPlatform::current() const {
  const Fiber* const fiber = Fiber::current();
  for (const auto& each : strands_) {
    if (&each->fiber == fiber) return each.get();
  }
  return nullptr;
}

void ProcessPlatform::wake_after(Instant delay, const Wake& wake) {
  process_.after(delay, [wake] {
    if (Strand* const strand = std::exchange(*wake, nullptr)) strand->fiber.resume();
  });
}

void ProcessPlatform::wait_for(const Wake& wake) {
  Strand* const self = current();
  SPEEDO_ASSERT(self != nullptr);
  if (process_.alive()) Fiber::stop();
  *wake = nullptr;
  SPEEDO_ASSERT(process_.alive() || !self->unwinding);
  leave_if_dead();
}

void ProcessPlatform::leave_if_dead() const {
  Strand* const self = current();
  if (process_.alive() || self == nullptr || self->unwinding) return;
  self->unwinding = true;
  throw ProcessDied();
}

void ProcessPlatform::sleep(Instant time) {
  const auto wake = std::make_shared<Strand*>(current());
  wake_after(time, wake);
  wait_for(wake);
}

void ProcessPlatform::pause(Instant time) {
  Strand* const self = current();
  if (self == nullptr || !process_.alive()) return;
  const auto wake = std::make_shared<Strand*>(self);
  wake_after(time, wake);
  Fiber::stop();
  *wake = nullptr;
}

// A destructor waits here: nothing is thrown, and a dead process' thread is ended on the spot.
void ProcessPlatform::join(const std::shared_ptr<Strand>& strand) {
  while (!strand->fiber.over()) {
    if (!process_.alive()) {
      if (!strand->fiber.has_begun()) break;
      strand->fiber.resume();
      continue;
    }
    SPEEDO_ASSERT(current() != nullptr);
    const auto wake = std::make_shared<Strand*>(current());
    strand->joining.push_back(wake);
    Fiber::stop();
    *wake = nullptr;
  }
  std::erase(strands_, strand);
}

void ProcessPlatform::unwind() {
  SPEEDO_ASSERT(!process_.alive());
  const std::vector<std::shared_ptr<Strand>> all = strands_;
  for (const auto& each : all) {
    while (each->fiber.has_begun() && !each->fiber.over()) each->fiber.resume();
  }
}

}  // namespace speedo::sim
