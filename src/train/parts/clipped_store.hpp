#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <span>
#include <string_view>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>

#include "train/parts/neighbor_copies.hpp"
#include "train/parts/part_clip.hpp"

namespace speedo {

// A job's records as the merger of one part has them: weights and contributions have the part's
// elements and the fingerprint of the part's layout. Weights that it puts are this part's chunks;
// no manifest is written, but somebody asked whether they count. Its checkpoints are its own, until
// a later merger of the part puts one.
// Thread safety: one thread at a time.
class ClippedStore : public RecordStore {
 public:
  struct Model {
    Digest whole, clipped;
    std::uint64_t element_count = 0;  // of the whole
  };
  // Says whether what was written counts; an error: it does not.
  using Vote = std::function<Result<void>(const WrittenPart& written)>;

  // `store`: fenced with the master's term. `copies`: of this part, kept with it; null: none.
  ClippedStore(std::shared_ptr<ParameterStore> store, PartClip clip, const Model& model,
               std::uint32_t first_slot, NeighborCopies* copies);

  // A version counts by the vote; what is put again of the one that counts replaces what was lost.
  void set_vote(Vote vote) { vote_ = std::move(vote); }

  std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) override;
  Result<std::unique_ptr<RecordReader>> read(std::string_view key) override;
  // The newest weights, of the copy on the next server.
  Result<std::unique_ptr<RecordReader>> read_copy();
  std::vector<Result<std::unique_ptr<RecordReader>>> read_all(
      std::span<const std::string> keys) override;
  std::unique_ptr<AheadReader> read_ahead(std::string_view key,
                                          const AheadRecord& record) override;
  using RecordStore::erase;
  Result<void> erase(std::string_view key, std::uint64_t element_count) override;
  Result<void> clear_contributions() override;

 private:
  class Reader;
  class Ahead;
  class Writer;
  Result<void> count(std::uint64_t version, const WrittenPart& written);
  std::uint32_t slot_of(std::uint64_t version) const;
  bool is_checkpoint(std::string_view key) const { return key == checkpoint_key(); }
  PartCheckpointPlace checkpoint_place() const { return {clip_, copies_ != nullptr, first_slot_}; }

  const std::shared_ptr<ParameterStore> store_;
  const PartClip clip_;
  const Model model_;
  const std::uint32_t first_slot_;
  NeighborCopies* const copies_;
  Vote vote_;
  // What counts: the newest version that was put, and where it lies.
  std::optional<std::uint64_t> version_;
  WrittenPart written_;
};

// The newest weights of a part into `values`, which have its size. What its server has lost comes
// from the copy on the next one, if there are copies. Errors: those of get_once().
Result<RecordInfo> read_part(ClippedStore& store, bool has_copies, std::size_t part,
                             const Digest& model, std::span<float> values);

// The newest weights of a job that is merged in parts, likewise, as a whole. Error kNotFound, too,
// if they are replaced meanwhile. Blocking.
Result<RecordInfo> read_all_parts(const std::shared_ptr<ParameterStore>& store,
                                  const ParameterLayout& layout, std::span<float> values);

}  // namespace speedo
