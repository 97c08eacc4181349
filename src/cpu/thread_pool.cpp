#include "cpu/thread_pool.hpp"

#include <speedo/base/assert.hpp>
#include <speedo/base/thread_name.hpp>

namespace speedo::cpu {
namespace {

// Layers follow each other within microseconds, and waking a sleeping thread takes tens of them; so
// a thread looks this often before it sleeps (some 50 microseconds).
constexpr int kSpins = 2000;

// A thread that lost its core to other programs is given the caller's this often, before the caller
// sleeps: each time costs a call of the system, and others than that thread may take the core.
constexpr int kYields = 100;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads, int parts) : threads_(threads), parts_(parts) {
  SPEEDO_ASSERT(threads >= 1 && parts >= threads);
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] {
      name_thread("compute");
      work(thread);
    });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(const Job& job) {
  job_ = job;
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  do_parts(0);
  // Parts are equal, so the others end soon.
  int spins = 0;
  for (int left; (left = pending_.load(std::memory_order_acquire)) > 0; ++spins) {
    if (spins < kSpins) {
      pause();
    } else if (spins < kSpins + kYields) {
      std::this_thread::yield();
    } else {
      pending_.wait(left, std::memory_order_acquire);
    }
  }
}

void ThreadPool::do_parts(int thread) const {
  const auto parts = static_cast<int>(job_.division.parts);
  for (int part = thread; part < parts; part += threads_) {
    job_.call(job_.body, job_.division, part);
  }
}

void ThreadPool::work(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    std::uint32_t now = generation_.load(std::memory_order_acquire);
    for (int spins = 0; now == seen && spins < kSpins; ++spins) {
      pause();
      now = generation_.load(std::memory_order_acquire);
    }
    if (now == seen) {
      generation_.wait(seen, std::memory_order_acquire);
      continue;
    }
    seen = now;
    if (stop_.load()) return;
    do_parts(thread);
    if (pending_.fetch_sub(1, std::memory_order_release) == 1) pending_.notify_one();
  }
}

}  // namespace speedo::cpu
