#include "data/convert.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>

#include "caffe.pb.h"
#include "data/dataset_writer.hpp"
#include "data/datum.hpp"

namespace speedo {

namespace {

// Records become Datums.
class DatumWriter : public DatasetWriter {
 public:
  explicit DatumWriter(std::unique_ptr<DatabaseWriter> database) : database_(std::move(database)) {}
  Result<void> add(const std::string& key, const Record& record) override {
    std::string value;
    encode_datum(record, datum_, value);
    return database_->put(key, std::move(value));
  }
  Result<void> commit() override { return database_->commit(); }

 private:
  std::unique_ptr<DatabaseWriter> database_;
  caffe::Datum datum_;
};

Result<std::unique_ptr<DatasetWriter>> make_writer(const ConvertOptions& options) {
  if (options.format == RecordFormat::kHdf5) return make_hdf5_dataset_writer(options);
  SPEEDO_ASSIGN(std::unique_ptr<DatabaseWriter> database, make_database_writer(options));
  return std::unique_ptr<DatasetWriter>(std::make_unique<DatumWriter>(std::move(database)));
}

}  // namespace

Result<std::unique_ptr<DatabaseWriter>> make_database_writer(const ConvertOptions& options) {
  SPEEDO_ASSERT(options.format != RecordFormat::kHdf5);
  if (options.format == RecordFormat::kLmdb) return make_lmdb_writer(options);
  if (options.format == RecordFormat::kLevelDb) return make_leveldb_writer(options);
  return make_datumfile_writer(options);
}

Result<void> convert(DataSource& source, const ConvertOptions& options) {
  SPEEDO_ASSIGN(const std::unique_ptr<DatasetWriter> writer, make_writer(options));
  // Caffe's eight digits; more where the keys would not sort by number any longer.
  const std::size_t digits = std::max<std::size_t>(8, std::to_string(source.size() - 1).size());
  Record record;
  for (std::int64_t index = 0; index < source.size(); ++index) {
    SPEEDO_TRY(source.read(index, record));
    SPEEDO_TRY(writer->add(fmt::format("{:0{}}", index, digits), record));
    if (options.progress) options.progress(index + 1, source.size());
  }
  return writer->commit();
}

}  // namespace speedo
