#pragma once

#include <memory>
#include <string>
#include <vector>

#include <speedo/store/part_store.hpp>

#include "store/chunked_store.hpp"
#include "store/chunk_put.hpp"

namespace speedo {

// Puts the chunks of a record that lie on one server.
class ChunkPartWriter : public PartWriter {
 public:
  ChunkPartWriter(std::shared_ptr<StoreShared> shared, std::string_view key,
                  const RecordInfo& info, RecordPart where);
  ~ChunkPartWriter() override { abandon(chunks_); }
  void write(std::size_t chunk, std::span<const float> values) override;
  bool is_sent() const override;
  Result<WrittenPart> finish() override;

 private:
  std::size_t place_of(std::size_t chunk) const;
  Result<bool> rewrite_lost_chunks();

  const std::shared_ptr<StoreShared> shared_;
  const std::string key_;
  const RecordKeys names_;
  const ChunkDestination destination_;
  const std::uint64_t element_count_;
  const RecordPart where_;
  std::vector<KvPtr> chunks_;  // of this part
};

}  // namespace speedo
