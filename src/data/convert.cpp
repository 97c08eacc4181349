#include "data/convert.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/folder.hpp>

#include "caffe.pb.h"
#include "data/bad_records.hpp"
#include "data/dataset_writer.hpp"
#include "data/datum/datum.hpp"
#include "data/folder_target.hpp"
#include "data/record_group.hpp"

namespace speedo {

namespace {

// Records become Datums. Those that are Datums stay as they are: of an encoded image it is left to
// the net what it makes of it.
class DatumWriter : public DatasetWriter {
 public:
  DatumWriter(DataSource& source, std::unique_ptr<DatabaseWriter> database)
      : source_(source), database_(std::move(database)) {}
  Result<void> add(const std::string& key, const RecordRead& read) override {
    std::string value;
    SPEEDO_ASSIGN(const bool is_datum, source_.read_datum(read.index, value));
    if (!is_datum) encode_datum(*read.record, datum_, value);
    return database_->put(key, std::move(value));
  }
  Result<void> commit() override { return database_->commit(); }

 private:
  DataSource& source_;
  std::unique_ptr<DatabaseWriter> database_;
  caffe::Datum datum_;
};

Result<std::unique_ptr<DatasetWriter>> make_writer(DataSource& source,
                                                   const ConvertOptions& options) {
  if (options.format == RecordFormat::kHdf5) return make_hdf5_dataset_writer(options);
  SPEEDO_ASSIGN(std::unique_ptr<DatabaseWriter> database, make_database_writer(options));
  return std::unique_ptr<DatasetWriter>(
      std::make_unique<DatumWriter>(source, std::move(database)));
}

// Otherwise the system says of the whole name that it does not exist.
Result<void> check_parent(const std::filesystem::path& output) {
  const std::filesystem::path folder = folder_of(named_folder(output));
  std::error_code code;
  if (std::filesystem::exists(folder, code) || code) return {};
  return Error{ErrorCode::kCannotWrite, fmt::format("cannot write '{}': its folder '{}' does not "
                                                    "exist: create it, or name another",
                                                    output.string(), folder.string())};
}

}  // namespace

RecordFormat record_format_named(const std::string& backend) {
  if (backend == "leveldb") return RecordFormat::kLevelDb;
  if (backend == "datumfile") return RecordFormat::kDatumfile;
  return backend == "hdf5" ? RecordFormat::kHdf5 : RecordFormat::kLmdb;
}

Result<std::unique_ptr<DatabaseWriter>> make_database_writer(const ConvertOptions& options) {
  SPEEDO_ASSERT(options.format != RecordFormat::kHdf5);
  SPEEDO_TRY(check_parent(options.output));
  if (options.format == RecordFormat::kLmdb) return make_lmdb_writer(options);
  if (options.format == RecordFormat::kLevelDb) return make_leveldb_writer(options);
  return make_datumfile_writer(options);
}

Result<void> go_on(const ConvertOptions& options, std::int64_t done, std::int64_t total) {
  if (options.progress) options.progress(done, total);
  if (done == total || !options.stopped || !options.stopped()) return {};
  return Error{ErrorCode::kUnavailable,
               fmt::format("stopped after {} of {} records: {} was not written", done, total,
                           options.output.string())};
}

Result<std::int64_t> convert(DataSource& source, const ConvertOptions& options) {
  SPEEDO_ASSIGN(const std::unique_ptr<DatasetWriter> writer, make_writer(source, options));
  // Caffe's eight digits; more where the keys would not sort by number any longer.
  const std::size_t digits = std::max<std::size_t>(8, std::to_string(source.size() - 1).size());
  BadRecords bad(options.on_bad_record, nullptr);
  GroupedRecords records(source);
  std::int64_t written = 0;
  for (std::int64_t index = 0, missed = 0; index < source.size(); ++index) {
    RecordRead& read = records.next();
    const bool is_good = read.outcome.has_value();
    const auto in_a_row = static_cast<std::uint64_t>(missed);
    if (!is_good &&
        !bad.pass_over(static_cast<std::uint64_t>(index), read.outcome.error(), in_a_row)) {
      return std::move(read.outcome).error();
    }
    missed = is_good ? 0 : missed + 1;
    if (is_good) SPEEDO_TRY(writer->add(fmt::format("{:0{}}", written++, digits), read));
    SPEEDO_TRY(go_on(options, index + 1, source.size()));
  }
  if (written == 0) return Error{ErrorCode::kData, "no record could be read"};
  SPEEDO_TRY(writer->commit());
  return written;
}

}  // namespace speedo
