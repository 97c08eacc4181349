#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace speedo::cpu {

// Threads that split loops into parts, as many as threads or more. The caller's thread takes the
// first part itself. Work is divided by count alone, so the same number of parts always gives the
// same sums, however many threads share them.
// Thread safety: one thread at a time may call; bodies must not call.
class ThreadPool {
 public:
  // Requires: parts >= threads >= 1.
  ThreadPool(int threads, int parts);
  explicit ThreadPool(int threads) : ThreadPool(threads, threads) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The most parts that there are: bodies are told which one of them they work on, from 0.
  int size() const { return parts_; }

  // How [0, count) is divided: into at most `most` parts that begin at multiples of `grain`, no
  // more of them than grains, none of them empty.
  struct Division {
    Division(std::int64_t all, std::int64_t grain_size, std::int64_t most)
        : count(all),
          grain(grain_size),
          grains((all + grain_size - 1) / grain_size),
          parts(std::min(most, grains)) {}
    std::int64_t begin(std::int64_t part) const { return grains * part / parts * grain; }
    std::int64_t end(std::int64_t part) const { return std::min(begin(part + 1), count); }
    std::int64_t size(std::int64_t part) const { return end(part) - begin(part); }

    std::int64_t count, grain, grains, parts;
  };
  Division divide(std::int64_t count, std::int64_t grain) const { return {count, grain, size()}; }

  // Calls body(begin, end, part) on the parts of [0, count), each thread on every so-manieth one,
  // and returns when all are done.
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
  void work(int thread);
  void do_parts(int thread) const;

  const int threads_, parts_;
  Job job_{nullptr, nullptr, {0, 1, 1}};
  // Counts jobs; the threads wait for it to change.
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<int> pending_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace speedo::cpu
