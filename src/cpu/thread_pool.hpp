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

  // How [0, count) is divided: into at most `threads` parts that begin at multiples of `grain`, no
  // more of them than grains, none of them empty.
  struct Division {
    Division(std::int64_t all, std::int64_t grain_size, std::int64_t threads)
        : count(all),
          grain(grain_size),
          grains((all + grain_size - 1) / grain_size),
          parts(std::min(threads, grains)) {}
    std::int64_t begin(std::int64_t part) const { return grains * part / parts * grain; }
    std::int64_t end(std::int64_t part) const { return std::min(begin(part + 1), count); }
    std::int64_t size(std::int64_t part) const { return end(part) - begin(part); }

    std::int64_t count, grain, grains, parts;
  };
  Division divide(std::int64_t count, std::int64_t grain) const { return {count, grain, size()}; }

  // Calls body(begin, end, thread) on the parts of [0, count), part i on thread i, and returns when
  // all are done.
  template <class Body>
  void split(std::int64_t count, std::int64_t grain, const Body& body) {
    const Division division = divide(count, grain);
    if (division.parts <= 1) {
      if (count > 0) body(std::int64_t{0}, count, 0);
      return;
    }
    run({&body,
         [](const void* what, const Division& all, int part) {
           (*static_cast<const Body*>(what))(all.begin(part), all.end(part), part);
         },
         division});
  }

 private:
  struct Job {
    const void* body;
    void (*call)(const void* body, const Division& division, int part);
    Division division;
  };

  void run(const Job& job);
  void work(int part);

  Job job_{nullptr, nullptr, {0, 1, 1}};
  // Counts jobs; the threads wait for it to change.
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<int> pending_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace speedo::cpu
