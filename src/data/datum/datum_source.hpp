#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/data/data_source.hpp>

#include "data/datum/datum.hpp"
#include "data/datum/record_index.hpp"
#include "data/scratch_pool.hpp"

namespace speedo {

// Serialized Datums at known places of a file: LMDB and datumfile alike.
class DatumSource : public DataSource {
 public:
  // `path`: the folder of an LMDB database or its data file. Error: also kData for an empty one.
  static Result<std::unique_ptr<DataSource>> open_lmdb(const std::filesystem::path& path,
                                                       ImageColor color);
  static Result<std::unique_ptr<DataSource>> open_datumfile(const std::filesystem::path& path,
                                                            ImageColor color);

  std::int64_t size() const override { return static_cast<std::int64_t>(records_.size()); }
  Result<void> read(std::int64_t index, Record& record) override;
  Result<bool> read_datum(std::int64_t index, std::string& datum) override;
  void read_group(std::span<RecordRead> reads) override;

 private:
  DatumSource(RandomFile file, std::vector<RecordExtent> records, ImageColor color);
  static Result<std::unique_ptr<DataSource>> make(RandomFile file,
                                                  Result<std::vector<RecordExtent>> records,
                                                  ImageColor color);
  Error fault(std::int64_t index, const Error& error) const;

  // What one thread decodes with.
  struct Desk {
    explicit Desk(ImageColor color) : group(color) {}
    DatumGroup group;
    std::vector<std::byte> value;
  };

  // Where the record's value lies in the desk's memory.
  Result<std::span<const std::byte>> value_of(std::int64_t index, Desk& desk) const;

  RandomFile file_;
  std::vector<RecordExtent> records_;
  ImageColor color_;
  ScratchPool<Desk> desks_;
};

}  // namespace speedo
