#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "data/prefetch_feed.hpp"

namespace speedo {

enum class RecordFormat { kLmdb, kLevelDb, kDatumfile, kHdf5 };

// By the name that commands give a backend: leveldb, datumfile or hdf5; else LMDB.
RecordFormat record_format_named(const std::string& backend);

struct ConvertOptions {
  // LMDB and LevelDB: a folder. Datumfile: a file. HDF5: the list that a prototxt names; the data
  // lie beside it, in NAME_0.h5, NAME_1.h5, ...
  std::filesystem::path output;
  RecordFormat format = RecordFormat::kLmdb;
  OnBadRecord on_bad_record = OnBadRecord::kAbort;
  bool force = false;  // replace what is there, if it is data of this format
  std::int64_t hdf5_file_bytes_max = std::int64_t{1} << 30U;
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};  // may be empty
  // Asked after every record: true ends it. May be empty.
  std::function<bool()> stopped = {};
};

// After so many records. Error: kUnavailable, it is to end.
Result<void> go_on(const ConvertOptions& options, std::int64_t done, std::int64_t total);

// Writes all records of a source, keyed by number, as Caffe's own converters do, and returns how
// many there were. Each is decoded, to know that it can be, but a record that is kept as a Datum
// is copied as it is, except to HDF5. Records left out leave no number free. The output appears
// when it is complete; a failure leaves nothing behind but, for HDF5, parts already completed.
// Errors: kCannotWrite, also when the output exists already; kUnavailable, stopped; those of the
// source.
Result<std::int64_t> convert(DataSource& source, const ConvertOptions& options);

// Two HDF5 outputs of which one's data would lie where the other's list or data do.
std::optional<std::pair<std::string, std::string>> clashing_hdf5_outputs(
    std::span<const std::string> outputs);

}  // namespace speedo
