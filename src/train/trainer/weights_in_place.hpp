#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <speedo/store/record_store.hpp>

namespace speedo {

// A finished version of the weights as it lies in memory that its writer shares: computed with
// where it is, and not copied. Its writer does not wait: what was computed counts if are_still()
// says so afterwards. Thread safety: one thread at a time.
class WeightsInPlace {
 public:
  // Takes the reader, if its record lies in one piece, aligned as arenas are; else leaves it.
  static std::optional<WeightsInPlace> take(std::unique_ptr<RecordReader>& reader);

  // Valid while this lives.
  const float* values() const { return values_; }
  bool are_still() const;

 private:
  WeightsInPlace(std::unique_ptr<RecordReader> reader, const float* values)
      : reader_(std::move(reader)), values_(values) {}

  std::unique_ptr<RecordReader> reader_;
  const float* values_;
};

}  // namespace speedo
