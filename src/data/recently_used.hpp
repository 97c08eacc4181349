#pragma once

#include <cstddef>
#include <list>
#include <utility>

namespace speedo {

// The values that were asked for last, by key. Thread safety: none.
template <class Key, class Value>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(std::size_t count) : count_(count) {}

  // Null: not kept. What it points to lives until another is kept.
  Value* find(const Key& key) {
    for (auto place = kept_.begin(); place != kept_.end(); ++place) {
      if (place->first != key) continue;
      kept_.splice(kept_.begin(), kept_, place);
      return &kept_.front().second;
    }
    return nullptr;
  }

  // In place of the one that was not asked for longest. Requires: find() has not found it.
  Value& keep(const Key& key, Value value) {
    kept_.emplace_front(key, std::move(value));
    if (kept_.size() > count_) kept_.pop_back();
    return kept_.front().second;
  }

 private:
  std::size_t count_;
  std::list<std::pair<Key, Value>> kept_;  // most recently used first
};

}  // namespace speedo
