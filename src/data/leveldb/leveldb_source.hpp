#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <speedo/data/data_source.hpp>

#include "data/datum/datum.hpp"
#include "data/leveldb/leveldb_index.hpp"
#include "data/random_file.hpp"
#include "data/recently_used.hpp"
#include "data/scratch_pool.hpp"

namespace speedo {

// The Datums of a LevelDB database, in the order of their keys. Nothing is locked or written: any
// number of processes may read one at once, as long as nobody writes it.
class LeveldbSource : public DataSource {
 public:
  // Errors: kData, also for an empty database; kUnsupported.
  static Result<std::unique_ptr<DataSource>> open(const std::filesystem::path& folder,
                                                  ImageColor color);

  std::int64_t size() const override { return static_cast<std::int64_t>(index_.records.size()); }
  Result<void> read(std::int64_t index, Record& record) override;
  Result<bool> read_datum(std::int64_t index, std::string& datum) override;
  void read_group(std::span<RecordRead> reads) override;

 private:
  LeveldbSource(std::filesystem::path folder, LeveldbIndex index, ImageColor color);

  // What one thread reads with, and the block that it read last: small records share one.
  struct Desk {
    explicit Desk(ImageColor color) : group(color) {}
    DatumGroup group;
    std::vector<std::byte> packed, block;
    const LeveldbRecord* in_block = nullptr;  // a record of `block`
  };
  // A database of ImageNet's size has tables by the ten thousand; a process may open a thousand.
  static constexpr std::size_t kOpenTablesMax = 64;
  using OpenFile = std::shared_ptr<const RandomFile>;

  Result<OpenFile> open_file(std::uint32_t index);
  // "record 3 (key '0003')"
  std::string name_of(std::int64_t index) const;
  // Where the record's value lies in the desk's block. Error: begins with the record's name.
  Result<std::span<const std::byte>> value_of(std::int64_t index, Desk& desk);
  Result<std::span<const std::byte>> unnamed_value_of(const LeveldbRecord& record, Desk& desk);

  const std::filesystem::path folder_;
  const LeveldbIndex index_;
  const ImageColor color_;
  ScratchPool<Desk> desks_;
  std::mutex mutex_;
  RecentlyUsed<std::uint32_t, OpenFile> open_{kOpenTablesMax};  // by index; guarded by mutex_
};

}  // namespace speedo
