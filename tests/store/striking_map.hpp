#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/key_value.hpp"

namespace speedo::test {

// A map before whose first operation for which `is_due` holds something happens, once: its server
// loses data, or others go on while the map's user stands still.
// Thread safety: one thread.
class StrikingMap : public KeyValue {
 public:
  using IsDue = std::function<bool(const KvOperation& operation)>;
  StrikingMap(std::shared_ptr<KeyValue> map, IsDue is_due, std::function<void()> strike)
      : map_(std::move(map)), is_due_(std::move(is_due)), strike_(std::move(strike)) {}
  void submit(KvPtr operation) override {
    if (strike_ && is_due_(*operation)) std::exchange(strike_, nullptr)();
    map_->submit(std::move(operation));
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }
  std::size_t parts() const override { return map_->parts(); }
  std::size_t part_of(std::string_view key) const override { return map_->part_of(key); }

  bool has_struck() const { return !strike_; }

 private:
  const std::shared_ptr<KeyValue> map_;
  const IsDue is_due_;
  std::function<void()> strike_;
};

}  // namespace speedo::test
