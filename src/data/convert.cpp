#include "data/convert.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "data/dataset_writer.hpp"

namespace speedo {

namespace {

Result<std::unique_ptr<DatasetWriter>> make_writer(const ConvertOptions& options) {
  switch (options.format) {
    case RecordFormat::kLmdb:
      return make_lmdb_writer(options);
    case RecordFormat::kDatumfile:
      return make_datumfile_writer(options);
    case RecordFormat::kHdf5:
      break;
  }
  return make_hdf5_dataset_writer(options);
}

}  // namespace

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
