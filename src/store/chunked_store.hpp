#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include <speedo/store/parameter_store.hpp>

#include "store/key_value.hpp"
#include "store/mastership.hpp"
#include "store/record_codec.hpp"

namespace speedo {

// What this program knows of a record that it has put, so that only its first put has to read the
// old manifest.
struct RecordTrack {
  bool known = false;      // the next two are the manifest's
  std::uint64_t term = 0;
  std::uint32_t slot = 0;
  std::uint32_t first_slot = 0;  // of the writer's own
  std::size_t chunks = 0;        // the most that any of its slots holds
  // Chunks of another term or writer that a put replaces; to be erased when it is visible. 0: none.
  std::uint64_t replaced_term = 0;
  std::size_t replaced_chunks = 0;
  std::set<std::uint32_t> replaced_slots;  // the first one of each range that it had copies in
  // Takes the manifest of another term or writer for what a put replaces.
  void replace(const RecordManifest& old);
};

// What a store shares with its writers and readers.
struct StoreShared {
  StoreShared(std::shared_ptr<KeyValue> key_value, std::string job_name)
      : map(std::move(key_value)), job(std::move(job_name)) {}
  // For an operation that is a master's of this term; none if it is 0.
  std::optional<KvMaster> master_of(std::uint64_t fence) const;
  // The same, of the writer of a record that is put in turn; of any other if its first slot is 0.
  std::optional<KvMaster> master_of(std::uint64_t fence, std::string_view key,
                                    std::uint32_t first_slot) const;

  const std::shared_ptr<KeyValue> map;
  const std::string job;
  std::atomic<std::uint64_t> term{0};
  std::atomic<std::uint64_t> known_term{0};  // that every server behind the first knows

  std::mutex mutex;
  std::map<std::string, RecordTrack, std::less<>> tracks;
};

// A job on any KeyValue, its records as chunks and a manifest.
class ChunkedStore : public ParameterStore {
 public:
  // Requires: check_job_name(job) succeeds.
  ChunkedStore(std::shared_ptr<KeyValue> map, std::string job);

  std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) override;
  Result<std::unique_ptr<RecordReader>> read(std::string_view key) override;
  std::vector<Result<std::unique_ptr<RecordReader>>> read_all(
      std::span<const std::string> keys) override;
  std::unique_ptr<AheadReader> read_ahead(std::string_view key,
                                          const AheadRecord& record) override;
  using RecordStore::erase;
  Result<void> erase(std::string_view key, std::uint64_t element_count) override;
  Result<void> clear_contributions() override;

  Result<void> put_blob(std::string_view key, std::string_view value) override;
  Result<std::string> get_blob(std::string_view key) override;
  Result<void> erase_blob(std::string_view key) override;

  Result<ClaimAnswer> claim_master(const MasterClaim& claim) override;
  Result<void> release_master(const MasterClaim& claim) override;

  std::size_t parts() const override { return shared_->map->parts(); }
  std::unique_ptr<PartWriter> write_part(std::string_view key, const RecordInfo& info,
                                         RecordPart where) override;
  Result<void> put_parts(std::string_view key, const RecordInfo& info,
                         std::span<const WrittenPart> parts) override;
  Result<bool> has_put_parts(std::string_view key, const RecordInfo& info,
                             std::span<const WrittenPart> parts) override;
  Result<std::unique_ptr<RecordReader>> read_copies(std::string_view key) override;
  Result<bool> has_part(std::string_view key, const RecordInfo& info, std::size_t part,
                        const WrittenPart& written) override;
  std::unique_ptr<RecordWriter> write_in_turn(std::string_view key, const RecordInfo& info,
                                              std::uint32_t first_slot) override;
  Result<void> erase_in_turn(std::string_view key, std::uint64_t element_count,
                             std::uint32_t first_slot) override;
  void erase_unfinished(std::string_view key, std::uint64_t element_count,
                        std::uint32_t first_slot) override;
  void erase_copies(std::string_view key, std::uint64_t element_count, Copies copies) override;

  void fence(std::uint64_t term) override;
  Result<void> clear() override;
  Result<void> erase_unnamed() override;
  void stop_waiting() override { shared_->map->stop_waiting(); }
  Result<void> check_places() override { return shared_->map->check_places(); }

 private:
  Result<std::unique_ptr<RecordReader>> open(std::string_view key, const KvOperation& manifest);
  Result<void> erase_record(std::string_view key, std::uint64_t element_count,
                            std::uint32_t first_slot);
  // Of all records and blobs those whose names are such.
  using IsOf = bool (*)(std::string_view name);
  Result<void> erase_listed(const std::string& what, IsOf is_of);
  RecordManifest manifest_of(const RecordInfo& info, std::span<const WrittenPart> parts) const;

  std::shared_ptr<StoreShared> shared_;
};

// Slots of a record and the seconds after which its keys vanish (0: never).
struct RecordPolicy {
  std::uint32_t slots = 0;
  std::uint32_t expiry_seconds = 0;
};
RecordPolicy policy_of(std::string_view key);

// The KvOperation::only_server of an operation on a chunk: `incarnation`, which is of the server of
// its record's manifest, if `key` lies there too; else 0, as others' incarnations count apart.
std::uint64_t only_with_manifest(const KeyValue& map, const RecordKeys& names,
                                 const std::string& key, std::uint64_t incarnation);

// Submits `operation` and waits; with the condition of its master, if it has one. `what` names the
// thing in an error. Errors: those of the map and of execute_as_master().
Result<void> execute_fenced(StoreShared& shared, const std::string& what, const KvPtr& operation);

// Erases keys, wherever they lie, with the condition of `master`, if there is one.
Result<void> erase_fenced(StoreShared& shared, const std::string& what,
                          std::vector<std::string> keys, const std::optional<KvMaster>& master);

// Makes a manifest the record's; gives the incarnation of the server that took it. `first_slot`:
// see StoreShared::master_of(); `only_server`: see KvOperation.
Result<std::uint64_t> put_manifest(StoreShared& shared, std::string_view key,
                                   const RecordManifest& manifest, std::uint32_t first_slot = 0,
                                   std::uint64_t only_server = 0);

// The manifest of record `key`, and which incarnation of its server has shown it, if that is asked
// for. Errors: kNotFound, kCorrupt and those of the map.
Result<RecordManifest> read_manifest(StoreShared& shared, std::string_view key,
                                     std::uint64_t* server = nullptr);

}  // namespace speedo
