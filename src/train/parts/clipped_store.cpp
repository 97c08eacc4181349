#include "train/parts/clipped_store.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "base/log.hpp"
#include "store/is_lost.hpp"
#include "store/read_once.hpp"

namespace speedo {

// Chunks of the part, of a record that is read as a whole by others.
class ClippedStore::Reader : public RecordReader {
 public:
  Reader(ClippedStore& store, std::unique_ptr<RecordReader> whole)
      : store_(store), whole_(std::move(whole)), info_(whole_->info()) {
    const Model& model = store_.model_;
    const bool fits = info_.model == model.whole && info_.element_count == model.element_count;
    info_.model = fits ? model.clipped : Digest{};
    info_.element_count = fits ? clipped_count(info_.element_count, store_.clip_) : 0;
  }

  const RecordInfo& info() const override { return info_; }
  Result<bool> is_whole() override {
    if (store_.version_ != info_.version) return true;
    return store_.store_->has_part(weights_key(), whole_->info(), store_.clip_.part,
                                   store_.written_);
  }
  void request(std::size_t chunk, std::span<float> target) override {
    whole_->request(store_.clip_.whole_chunk(chunk), target);
  }
  bool is_done(std::size_t chunk) const override {
    return whole_->is_done(store_.clip_.whole_chunk(chunk));
  }
  Result<void> wait(std::size_t chunk) override {
    return whole_->wait(store_.clip_.whole_chunk(chunk));
  }
  std::uint64_t checksum(std::size_t chunk) const override {
    return whole_->checksum(store_.clip_.whole_chunk(chunk));
  }

 private:
  ClippedStore& store_;
  const std::unique_ptr<RecordReader> whole_;
  RecordInfo info_;
};

class ClippedStore::Ahead : public AheadReader {
 public:
  Ahead(PartClip clip, std::unique_ptr<AheadReader> whole)
      : clip_(clip), whole_(std::move(whole)) {}

  void look(std::span<const std::size_t> chunks) override {
    std::vector<std::size_t> there;
    for (const std::size_t chunk : chunks) there.push_back(clip_.whole_chunk(chunk));
    whole_->look(there);
  }
  bool is_answered() const override { return whole_->is_answered(); }
  std::vector<bool> seen() override { return whole_->seen(); }
  void request(std::size_t chunk, std::span<float> target) override {
    whole_->request(clip_.whole_chunk(chunk), target);
  }
  bool is_done(std::size_t chunk) const override {
    return whole_->is_done(clip_.whole_chunk(chunk));
  }
  Result<void> wait(std::size_t chunk) override { return whole_->wait(clip_.whole_chunk(chunk)); }
  std::uint64_t checksum(std::size_t chunk) const override {
    return whole_->checksum(clip_.whole_chunk(chunk));
  }

 private:
  const PartClip clip_;
  const std::unique_ptr<AheadReader> whole_;
};

// The state is the whole record's, and goes with its manifest.
class ClippedStore::Writer : public RecordWriter {
 public:
  // `copy`: null: there is none.
  Writer(ClippedStore& store, std::uint64_t version, std::unique_ptr<PartWriter> part,
         std::unique_ptr<PartWriter> copy)
      : store_(store), version_(version), part_(std::move(part)), copy_(std::move(copy)) {}

  void write(std::size_t chunk, std::span<const float> values) override {
    part_->write(store_.clip_.whole_chunk(chunk), values);
    if (copy_) copy_->write(store_.clip_.whole_chunk(chunk), values);
  }
  void set_state(std::string /*state*/) override {}
  bool is_sent() const override { return part_->is_sent() && (!copy_ || copy_->is_sent()); }
  Result<void> finish() override {
    if (copy_) SPEEDO_TRY(copy_->finish());
    SPEEDO_ASSIGN(const WrittenPart written, part_->finish());
    return store_.count(version_, written);
  }

 private:
  ClippedStore& store_;
  const std::uint64_t version_;
  const std::unique_ptr<PartWriter> part_, copy_;
};

ClippedStore::ClippedStore(std::shared_ptr<ParameterStore> store, PartClip clip, const Model& model,
                           std::uint32_t first_slot, NeighborCopies* copies)
    : store_(std::move(store)),
      clip_(clip),
      model_(model),
      first_slot_(first_slot),
      copies_(copies),
      written_{.slot = first_slot + kRecordSlots - 1, .checksums = {}} {}

Result<void> ClippedStore::count(std::uint64_t version, const WrittenPart& written) {
  if (version_ == version) return {};
  SPEEDO_ASSERT(vote_ != nullptr);
  SPEEDO_TRY(vote_(written));
  version_ = version;
  written_ = written;
  return {};
}

std::uint32_t ClippedStore::slot_of(std::uint64_t version) const {
  if (version_ == version) return written_.slot;
  return first_slot_ + (written_.slot - first_slot_ + 1) % kRecordSlots;
}

std::unique_ptr<RecordWriter> ClippedStore::write(std::string_view key, const RecordInfo& info) {
  if (is_checkpoint(key)) return write_part_checkpoint(*store_, checkpoint_place(), info);
  SPEEDO_ASSERT(key == weights_key() && info.model == model_.clipped);
  RecordInfo whole = info;
  whole.model = model_.whole;
  whole.element_count = model_.element_count;
  const std::uint32_t slot = slot_of(info.version);
  return std::make_unique<Writer>(
      *this, info.version, store_->write_part(key, whole, {clip_.part, slot}),
      copies_ == nullptr ? nullptr : copies_->write_weights(whole, slot));
}

Result<std::unique_ptr<RecordReader>> ClippedStore::read(std::string_view key) {
  if (is_checkpoint(key)) return store_->read(part_key(clip_.part, key));
  SPEEDO_ASSIGN(auto whole, store_->read(key));
  return std::unique_ptr<RecordReader>(std::make_unique<Reader>(*this, std::move(whole)));
}

Result<std::unique_ptr<RecordReader>> ClippedStore::read_copy() {
  SPEEDO_ASSIGN(auto whole, store_->read_copies(weights_key()));
  return std::unique_ptr<RecordReader>(std::make_unique<Reader>(*this, std::move(whole)));
}

std::vector<Result<std::unique_ptr<RecordReader>>> ClippedStore::read_all(
    std::span<const std::string> keys) {
  auto readers = store_->read_all(keys);
  for (auto& reader : readers) {
    if (reader) *reader = std::make_unique<Reader>(*this, std::move(*reader));
  }
  return readers;
}

std::unique_ptr<AheadReader> ClippedStore::read_ahead(std::string_view key,
                                                      const AheadRecord& record) {
  AheadRecord whole = record;
  whole.element_count = model_.element_count;
  return std::make_unique<Ahead>(clip_, store_->read_ahead(key, whole));
}

Result<void> ClippedStore::erase(std::string_view key, std::uint64_t element_count) {
  SPEEDO_ASSERT(is_checkpoint(key));
  return erase_part_checkpoint(*store_, checkpoint_place(), element_count);
}

Result<void> ClippedStore::clear_contributions() { return store_->clear_contributions(); }

Result<RecordInfo> read_part(ClippedStore& store, bool has_copies, std::size_t part,
                             const Digest& model, std::span<float> values) {
  auto read = get_once(store, weights_key(), model, values);
  if (read || !is_lost(read.error()) || !has_copies) return read;
  SPEEDO_ASSIGN(const auto copy, store.read_copy());
  SPEEDO_ASSIGN(const RecordInfo info, take_record(*copy, weights_key(), model, values));
  SPEEDO_WARN("server {} has lost its part of the weights: version {} comes from the copy on the "
              "next one",
              part + 1, info.version);
  return info;
}

Result<RecordInfo> read_all_parts(const std::shared_ptr<ParameterStore>& store,
                                  const ParameterLayout& layout, std::span<float> values) {
  const auto count = static_cast<std::uint64_t>(layout.element_count());
  std::optional<RecordInfo> whole;
  for (std::size_t part = 0; part < std::min(store->parts(), chunk_count(count)); ++part) {
    const PartClip clip{part, store->parts()};
    const Digest model = clip_layout(layout, clip).digest();
    ClippedStore clipped(store, clip, {layout.digest(), model, count}, 0, nullptr);
    std::vector<float> of_part(clipped_count(count, clip));
    SPEEDO_ASSIGN(const RecordInfo info, read_part(clipped, true, part, model, of_part));
    if (whole && (whole->version != info.version || whole->term != info.term)) {
      return Error{ErrorCode::kNotFound, "the weights were replaced while they were read"};
    }
    whole = info;
    put_back(of_part, clip, values);
  }
  if (!whole) return Error{ErrorCode::kNotFound, "the model has no weights"};
  return *whole;
}

}  // namespace speedo
