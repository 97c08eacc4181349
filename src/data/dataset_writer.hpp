#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "data/convert.hpp"

namespace speedo {

// Takes records one after the other. What is not committed leaves no trace. Errors: kCannotWrite.
class DatasetWriter {
 public:
  virtual ~DatasetWriter() = default;
  // Requires: the record was read, from the source that is converted.
  virtual Result<void> add(const std::string& key, const RecordRead& read) = 0;
  virtual Result<void> commit() = 0;
};

// The same, of values as they shall lie in the file: serialized Datums. Keys must grow, in the
// order of their bytes.
class DatabaseWriter {
 public:
  virtual ~DatabaseWriter() = default;
  virtual Result<void> put(const std::string& key, std::string value) = 0;
  virtual Result<void> commit() = 0;
};

// A database of a format other than HDF5, which has no Datums.
Result<std::unique_ptr<DatabaseWriter>> make_database_writer(const ConvertOptions& options);

// One for each format.
Result<std::unique_ptr<DatabaseWriter>> make_lmdb_writer(const ConvertOptions& options);
Result<std::unique_ptr<DatabaseWriter>> make_leveldb_writer(const ConvertOptions& options);
Result<std::unique_ptr<DatabaseWriter>> make_datumfile_writer(const ConvertOptions& options);
Result<std::unique_ptr<DatasetWriter>> make_hdf5_dataset_writer(const ConvertOptions& options);

}  // namespace speedo
