#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/chunk_fetch.hpp"
#include "store/chunked_store.hpp"

namespace speedo {

// Reads chunks of a record whose manifest is not there yet. In which slot those of a server lie
// shows with the first one that is there.
class ChunkAheadReader : public AheadReader {
 public:
  ChunkAheadReader(std::shared_ptr<StoreShared> shared, std::string_view key,
                   const AheadRecord& record);
  ~ChunkAheadReader() override;
  void look(std::span<const std::size_t> chunks) override;
  bool is_answered() const override;
  std::vector<bool> seen() override;
  void request(std::size_t chunk, std::span<float> target) override;
  bool is_done(std::size_t chunk) const override { return chunks_[chunk]->is_done(); }
  Result<void> wait(std::size_t chunk) override;
  std::uint64_t checksum(std::size_t chunk) const override;

 private:
  struct Look {
    std::size_t chunk;
    std::vector<KvPtr> slots;  // by slot; null for one that is known to be another's
  };
  bool is_there(const Look& look);
  std::size_t server_of(std::size_t chunk) const { return chunk % slots_.size(); }
  ExpectedChunk expected(std::size_t chunk) const;

  const std::shared_ptr<StoreShared> shared_;
  const std::string key_;
  const RecordKeys names_;
  const AheadRecord record_;
  std::vector<std::optional<std::uint32_t>> slots_;  // by server, once known
  std::vector<Look> looks_;
  std::vector<KvPtr> chunks_;
  std::vector<std::span<float>> targets_;
  std::vector<CodecKind> codecs_;  // of those that are there
  std::vector<std::optional<std::uint64_t>> checksums_;  // of those that were read
};

}  // namespace speedo
