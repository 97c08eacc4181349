#include "train/merger_thread.hpp"

#include <chrono>

#include <speedo/base/thread_name.hpp>

namespace speedo {
namespace {

constexpr std::chrono::seconds kIdleInterval{1};

}  // namespace

void MergerThread::start(std::function<void()> idle) {
  idle_ = std::move(idle);
  thread_ = std::thread([this] { run(); });
}

void MergerThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MergerThread::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

bool MergerThread::is_idle() {
  const std::lock_guard lock(mutex_);
  return jobs_.empty();
}

void MergerThread::run() {
  name_thread("merger");
  while (true) {
    Job job;
    bool stopping = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kIdleInterval, [this] { return stopping_ || !jobs_.empty(); });
      stopping = stopping_;
      if (!jobs_.empty()) {
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
    }
    if (job) {
      job(stopping);
    } else if (stopping) {
      return;
    } else {
      idle_();
    }
  }
}

}  // namespace speedo
