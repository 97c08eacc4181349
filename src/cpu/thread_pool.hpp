#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace speedo::cpu {

// Threads that split loops. The caller's thread takes the first part itself. Work is divided by
// count alone, so the same thread count always gives the same parts, hence the same sums.
// Thread safety: one thread at a time may call; bodies must not call.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(begin, end, thread) on disjoint parts of [0, count), and returns when all are done.
  // Parts begin at multiples of `grain` and there are no more of them than grains.
  template <class Body>
  void split(std::int64_t count, std::int64_t grain, const Body& body) {
    const std::int64_t grains = (count + grain - 1) / grain;
    const std::int64_t parts = std::min<std::int64_t>(size(), grains);
    if (parts <= 1) {
      if (count > 0) body(std::int64_t{0}, count, 0);
      return;
    }
    Job job;
    job.body = &body;
    job.call = [](const void* what, const Job& from, int part) {
      const std::int64_t first = from.grains * part / from.parts * from.grain;
      const std::int64_t last = from.grains * (part + 1) / from.parts * from.grain;
      (*static_cast<const Body*>(what))(first, std::min(last, from.count), part);
    };
    job.count = count, job.grain = grain, job.grains = grains, job.parts = parts;
    run(job);
  }

 private:
  struct Job {
    const void* body = nullptr;
    void (*call)(const void* body, const Job& job, int part) = nullptr;
    std::int64_t count = 0, grain = 1, grains = 0, parts = 1;
  };

  void run(const Job& job);
  void work(int part);

  Job job_;
  // Counts jobs; the threads wait for it to change.
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<int> pending_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace speedo::cpu
