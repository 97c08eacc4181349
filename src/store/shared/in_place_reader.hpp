#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/store/record_store.hpp>

#include "store/shared/record_memory.hpp"

namespace speedo {

// A version of a record in memory that its writer shares, as the two kinds of readers see it. What
// they ask for is there at once; a chunk's checksum is the generation that it is of.
template <class Reader>
class InPlaceSource : public Reader {
 public:
  void request(std::size_t chunk, std::span<float> target) override { targets_[chunk] = target; }
  bool is_done(std::size_t) const override { return true; }
  Result<void> wait(std::size_t chunk) override;
  std::uint64_t checksum(std::size_t) const override;
  std::span<const float> in_place(std::size_t chunk) override;
  Result<void> confirm(std::size_t chunk) override;

 protected:
  InPlaceSource(std::string key, std::shared_ptr<const SharedRecord> record,
                std::optional<SharedRecord::Version> version);

  const std::string key_;
  const std::shared_ptr<const SharedRecord> record_;
  std::optional<SharedRecord::Version> version_;

 private:
  std::vector<std::span<float>> targets_;
};

// A finished version.
class InPlaceReader : public InPlaceSource<RecordReader> {
 public:
  InPlaceReader(std::string key, std::shared_ptr<const SharedRecord> record,
                const SharedRecord::Version& version)
      : InPlaceSource(std::move(key), std::move(record), version) {}
  const RecordInfo& info() const override { return version_->info; }
};

// One that is being written, or expected.
class InPlaceAheadReader : public InPlaceSource<AheadReader> {
 public:
  InPlaceAheadReader(std::string key, std::shared_ptr<const SharedRecord> record,
                     const AheadRecord& expected)
      : InPlaceSource(std::move(key), std::move(record), std::nullopt), expected_(expected) {}
  void look(std::span<const std::size_t> chunks) override;
  std::vector<bool> seen() override { return std::move(seen_); }

 private:
  const AheadRecord expected_;
  std::vector<bool> seen_;
};

}  // namespace speedo
