#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <speedo/store/parameter_store.hpp>

#include "store/key_value.hpp"
#include "store/record_codec.hpp"

namespace speedo {

// What a store shares with its writers and readers.
struct StoreShared {
  StoreShared(std::shared_ptr<KeyValue> key_value, std::string job_name)
      : map(std::move(key_value)), job(std::move(job_name)) {}

  const std::shared_ptr<KeyValue> map;
  const std::string job;

  std::mutex mutex;
  // Slot of each record this program has put, so that only its first put reads the old manifest.
  std::map<std::string, std::uint32_t, std::less<>> last_slots;
};

// Records as chunks and a manifest on any KeyValue.
class ChunkedStore : public ParameterStore {
 public:
  // Requires: check_job_name(job) succeeds.
  ChunkedStore(std::shared_ptr<KeyValue> map, std::string job);

  std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) override;
  Result<std::unique_ptr<RecordReader>> read(std::string_view key) override;
  Result<void> put_blob(std::string_view key, std::string_view value) override;
  Result<std::string> get_blob(std::string_view key) override;
  Result<void> erase(std::string_view key) override;
  Result<void> clear() override;

 private:
  std::shared_ptr<StoreShared> shared_;
};

// Slots of a record and the seconds after which its keys vanish (0: never).
struct RecordPolicy {
  std::uint32_t slots = 0;
  std::uint32_t expiry_seconds = 0;
};
RecordPolicy policy_of(std::string_view key);

// The manifest of record `key`. Errors: kNotFound, kCorrupt and those of the map.
Result<RecordManifest> read_manifest(StoreShared& shared, std::string_view key);

}  // namespace speedo
