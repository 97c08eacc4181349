#include "sim/plan/plan_ahead.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::sim {

PlanAhead::PlanAhead(std::size_t count, std::size_t threads, Make make)
    : ahead_(threads), make_(std::move(make)), made_(count) {
  if (threads <= 1) return;
  for (std::size_t i = 0; i < std::min(threads, count); ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

// All are told before the first is waited for.
PlanAhead::~PlanAhead() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void PlanAhead::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto has_work = [this] { return begun_ < std::min(made_.size(), taken_ + ahead_); };
  while (changed_.wait(lock, stop, has_work) && !stop.stop_requested()) {
    const std::size_t number = begun_++;
    lock.unlock();
    auto made = make_(number, stop);
    lock.lock();
    made_[number] = std::move(made);
    changed_.notify_all();
  }
}

Result<PlanResult> PlanAhead::take() {
  std::unique_lock lock(mutex_);
  SPEEDO_ASSERT(taken_ < made_.size());
  const std::size_t number = taken_;
  if (threads_.empty()) {
    taken_ += 1;
    return make_(number, {});
  }
  changed_.wait(lock, [&] { return made_[number].has_value(); });
  taken_ += 1;
  changed_.notify_all();
  return *std::exchange(made_[number], std::nullopt);
}

}  // namespace speedo::sim
