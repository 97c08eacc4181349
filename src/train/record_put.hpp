#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

#include "train/store_errand.hpp"

namespace speedo {

// A record that is put beside other work. Thread safety: one thread at a time.
class RecordPut {
 public:
  // `behind`: puts on a thread of its own, whose stores may be used from several. Null: begins and
  // finishes where it is told, and only the chunks travel beside other work.
  explicit RecordPut(Platform* behind);

  // The store and `values` stay as they are until finish(), or the destructor. Requires: none is
  // under way.
  void begin(RecordStore& store, std::string_view key, const RecordInfo& info,
             std::span<const float> values);
  bool is_under_way() const;
  // Whether finish() would hardly wait.
  bool is_sent() const;
  // Whether nobody has to finish() it for its sake: a store that is away holds up nobody.
  bool is_behind() const { return errand_.has_value(); }
  // Requires: one is under way. Errors: those of the store.
  Result<void> finish();

 private:
  std::unique_ptr<RecordWriter> writer_;
  std::optional<StoreErrand> errand_;
};

}  // namespace speedo
