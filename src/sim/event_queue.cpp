#include "sim/event_queue.hpp"

#include <algorithm>
#include <utility>

namespace speedo::sim {

bool EventQueue::later(const Entry& a, const Entry& b) {
  return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
}

void EventQueue::at(Instant when, std::function<void()> action) {
  heap_.push_back({std::max(when, now_), sequence_++, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool EventQueue::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const Entry next = std::move(heap_.back());
  heap_.pop_back();
  now_ = next.when;
  steps_ += 1;
  next.action();
  return true;
}

void EventQueue::run_until(Instant end) {
  while (!heap_.empty() && heap_.front().when <= end) step();
  now_ = std::max(now_, end);
}

}  // namespace speedo::sim
