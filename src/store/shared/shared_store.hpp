#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/store/record_store.hpp>

#include "store/shared/record_memory.hpp"

namespace speedo {

// Records of which some lie in memory that processes of this machine share; all others in `base`.
// Who writes a record says where it is formed, who reads it is given what its writer has offered.
// Thread safety: as a RecordStore; the rest from any thread.
class SharedStore : public RecordStore {
 public:
  explicit SharedStore(std::shared_ptr<RecordStore> base) : base_(std::move(base)) {}
  // What is written and read here goes past all shared memory.
  RecordStore& base() { return *base_; }

  // From here on this process forms `key` in this memory; null: wherever it likes. Records of
  // another shape are written to `base`.
  void write_in(std::string_view key, std::shared_ptr<RecordMemory> memory);
  // Whether what is written in place goes to `base` at once as well.
  void set_copies(bool copies) { copies_ = copies; }
  // From here on `key` is read from what another process writes, until it is erased here. Null:
  // from `base`.
  void read_from(std::string_view key, std::shared_ptr<const SharedRecord> record);
  bool reads_in_place(std::string_view key) const { return record_of(key) != nullptr; }
  // What this process forms `key` in; null: nothing to be shared.
  std::shared_ptr<RecordMemory> memory_of(std::string_view key) const;

  std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) override;
  // What is shared and has no finished version is looked for in `base`.
  Result<std::unique_ptr<RecordReader>> read(std::string_view key) override;
  std::vector<Result<std::unique_ptr<RecordReader>>> read_all(
      std::span<const std::string> keys) override;
  std::unique_ptr<AheadReader> read_ahead(std::string_view key,
                                          const AheadRecord& record) override;
  using RecordStore::erase;
  Result<void> erase(std::string_view key, std::uint64_t element_count) override;
  Result<void> clear_contributions() override { return base_->clear_contributions(); }

 private:
  std::shared_ptr<const SharedRecord> record_of(std::string_view key) const;
  std::unique_ptr<RecordReader> read_in_place(std::string_view key) const;

  const std::shared_ptr<RecordStore> base_;
  std::atomic<bool> copies_{false};
  mutable std::mutex mutex_;
  // Both guarded by mutex_.
  std::map<std::string, std::shared_ptr<RecordMemory>, std::less<>> written_;
  std::map<std::string, std::shared_ptr<const SharedRecord>, std::less<>> read_;
};

}  // namespace speedo
