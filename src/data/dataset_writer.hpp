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
  virtual Result<void> add(const std::string& key, const Record& record) = 0;
  virtual Result<void> commit() = 0;
};

// One for each format.
Result<std::unique_ptr<DatasetWriter>> make_lmdb_writer(const ConvertOptions& options);
Result<std::unique_ptr<DatasetWriter>> make_datumfile_writer(const ConvertOptions& options);
Result<std::unique_ptr<DatasetWriter>> make_hdf5_dataset_writer(const ConvertOptions& options);

}  // namespace speedo
