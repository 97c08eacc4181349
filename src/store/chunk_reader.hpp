#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/chunk_fetch.hpp"
#include "store/chunked_store.hpp"

namespace speedo {

// Reads the chunks that one manifest names and checks them against it.
class ChunkReader : public RecordReader {
 public:
  // `names`: of the records that the chunks are found under, by part; one: all under this.
  ChunkReader(std::shared_ptr<StoreShared> shared, std::string_view key, RecordManifest manifest,
              std::vector<RecordKeys> names);
  ~ChunkReader() override;
  const RecordInfo& info() const override { return manifest_.info; }
  Result<bool> is_whole() override;
  void watch(std::atomic<std::uint64_t>& progress) override { progress_ = &progress; }
  void request(std::size_t chunk, std::span<float> target) override;
  bool is_done(std::size_t chunk) const override { return chunks_[chunk]->is_done(); }
  Result<void> wait(std::size_t chunk) override;
  std::uint64_t checksum(std::size_t chunk) const override {
    return manifest_.chunks[chunk].checksum;
  }

 private:
  ExpectedChunk expected(std::size_t chunk) const;
  std::string name_of(std::size_t chunk) const;

  const std::shared_ptr<StoreShared> shared_;
  const std::string key_;
  const std::vector<RecordKeys> names_;
  const RecordManifest manifest_;
  std::vector<KvPtr> chunks_;
  std::vector<std::span<float>> targets_;
  std::atomic<std::uint64_t>* progress_ = nullptr;  // see watch()
};

}  // namespace speedo
