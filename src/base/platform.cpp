#include <speedo/base/platform.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <speedo/base/thread_name.hpp>

#include "base/process_name.hpp"
#include "base/random_bits.hpp"

namespace speedo {
namespace {

using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Instant>;

class RealMonitor : public Monitor {
 public:
  void lock() override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }
  void notify_all() override { changed_.notify_all(); }
  void wait(std::optional<Instant> deadline) override {
    std::unique_lock lock(mutex_, std::adopt_lock);
    if (deadline) {
      changed_.wait_until(lock, SteadyTime(*deadline));
    } else {
      changed_.wait(lock);
    }
    lock.release();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class RealThread : public Thread {
 public:
  RealThread(const char* name, std::function<void()> work)
      : thread_([name, work = std::move(work)] {
          name_thread(name);
          work();
        }) {}
  ~RealThread() override { thread_.join(); }
  RealThread(const RealThread&) = delete;
  RealThread& operator=(const RealThread&) = delete;

 private:
  std::thread thread_;
};

class RealPlatform : public Platform {
 public:
  const Clock& clock() const override { return steady_clock(); }
  std::uint64_t wall_clock_microseconds() const override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }
  std::uint64_t random_bits() override { return speedo::random_bits(); }
  std::string process_name() const override { return speedo::process_name(); }
  bool is_known_dead(std::string_view process_name) const override {
    return speedo::is_known_dead(process_name);
  }
  std::unique_ptr<Monitor> make_monitor() override { return std::make_unique<RealMonitor>(); }
  std::unique_ptr<Thread> start_thread(const char* name, std::function<void()> work) override {
    return std::make_unique<RealThread>(name, std::move(work));
  }
  void sleep(Instant time) override { std::this_thread::sleep_for(time); }
};

}  // namespace

Platform& real_platform() {
  static RealPlatform platform;
  return platform;
}

}  // namespace speedo
