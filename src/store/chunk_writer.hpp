#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "store/chunked_store.hpp"
#include "store/record_garbage.hpp"

namespace speedo {

// Puts one record: chunks into a slot that no manifest names, then the manifest.
class ChunkWriter : public RecordWriter {
 public:
  // `first_slot`: of the writer's own, where the record is put in turn; else 0.
  ChunkWriter(std::shared_ptr<StoreShared> shared, std::string_view key, const RecordInfo& info,
              std::uint32_t first_slot);
  ~ChunkWriter() override;
  void write(std::size_t chunk, std::span<const float> values) override;
  bool is_coded() const override { return manifest_.info.codec != CodecKind::kNone; }
  void write_encoded(std::size_t chunk, std::span<const std::byte> bytes) override;
  void watch(std::atomic<std::uint64_t>& progress) override { progress_ = &progress; }
  void set_state(std::string state) override;
  bool is_sent() const override;
  Result<void> finish() override;

 private:
  Result<void> announce_term();
  void take_track();
  Result<void> choose_slot();
  Result<void> choose_anew();
  bool is_own(const RecordManifest& manifest) const;
  bool replaces_earlier() const;
  void submit_chunk(std::size_t chunk, std::span<const std::byte> bytes);
  // By server: the incarnation that was met last.
  using Incarnations = std::vector<std::uint64_t>;
  std::size_t server_of(std::size_t chunk) const { return chunk % shared_->map->parts(); }
  Result<bool> rewrite_lost_chunks(const Incarnations& now);
  Incarnations newest_incarnations() const;
  Result<Incarnations> look_at_servers() const;
  Result<void> write_manifest();
  Result<bool> try_finish();
  Result<void> finish_record();
  void record_visible();
  void record_refused();

  const std::shared_ptr<StoreShared> shared_;
  const std::string key_;
  const RecordKeys names_;
  const RecordPolicy policy_;
  const std::uint32_t first_slot_;
  RecordManifest manifest_;
  RecordTrack track_;           // as of before this put
  std::optional<Error> error_;  // it cannot be put
  std::vector<KvPtr> chunks_;
  std::atomic<std::uint64_t>* progress_ = nullptr;  // see watch()
  // The incarnation that showed the manifest by which a master's slot was chosen; else 0.
  std::uint64_t chosen_on_ = 0;
  std::uint64_t manifest_server_ = 0;  // the incarnation that took the manifest
};

}  // namespace speedo
