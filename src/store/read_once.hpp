#pragma once

#include <span>
#include <string_view>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// As get(), which opens again what was overwritten meanwhile and pauses before it, by the machine's
// clock: this ends with kNotFound instead, and leaves pauses to whoever has a Platform.
Result<RecordInfo> get_once(RecordStore& store, std::string_view key, const Digest& model,
                            std::span<float> values);

// What a reader of this record has, likewise. `overwritten`: unless null, set if that is why it
// ends.
Result<RecordInfo> take_record(RecordReader& reader, std::string_view key, const Digest& model,
                               std::span<float> values, bool* overwritten = nullptr);

}  // namespace speedo
