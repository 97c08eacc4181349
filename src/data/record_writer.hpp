#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "data/convert.hpp"

namespace speedo {

// Takes records one after the other. What is not committed leaves no trace. Errors: kCannotWrite.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  virtual Result<void> add(const std::string& key, const Record& record) = 0;
  virtual Result<void> commit() = 0;
};

// One for each format.
Result<std::unique_ptr<RecordWriter>> make_lmdb_writer(const ConvertOptions& options);
Result<std::unique_ptr<RecordWriter>> make_datumfile_writer(const ConvertOptions& options);
Result<std::unique_ptr<RecordWriter>> make_hdf5_record_writer(const ConvertOptions& options);

}  // namespace speedo
