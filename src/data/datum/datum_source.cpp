#include "data/datum/datum_source.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>

#include "data/datum/record_key.hpp"

namespace speedo {

DatumSource::DatumSource(RandomFile file, std::vector<RecordExtent> records, ImageColor color)
    : file_(std::move(file)), records_(std::move(records)), color_(color) {}

Result<std::unique_ptr<DataSource>> DatumSource::make(RandomFile file,
                                                      Result<std::vector<RecordExtent>> records,
                                                      ImageColor color) {
  if (!records) return std::move(records).error();
  if (records->empty()) {
    return Error{ErrorCode::kData, fmt::format("data source '{}' holds no records", file.name())};
  }
  return std::unique_ptr<DataSource>(
      new DatumSource(std::move(file), std::move(records).value(), color));
}

Result<std::unique_ptr<DataSource>> DatumSource::open_lmdb(const std::filesystem::path& path,
                                                           ImageColor color) {
  std::error_code code;
  const bool folder = std::filesystem::is_directory(path, code);
  SPEEDO_ASSIGN(RandomFile file, RandomFile::open(folder ? path / "data.mdb" : path));
  auto records = index_lmdb(file);
  return make(std::move(file), std::move(records), color);
}

Result<std::unique_ptr<DataSource>> DatumSource::open_datumfile(const std::filesystem::path& path,
                                                                ImageColor color) {
  SPEEDO_ASSIGN(RandomFile file, RandomFile::open(path));
  auto records = index_datumfile(file);
  return make(std::move(file), std::move(records), color);
}

std::string DatumSource::key_of(const RecordExtent& extent) const {
  std::string key(std::min<std::size_t>(extent.key_bytes, kShownKeyBytes), '\0');
  if (!file_.read(extent.key_offset, std::as_writable_bytes(std::span(key)))) return "?";
  return printable_key(key);
}

Result<void> DatumSource::read(std::int64_t index, Record& record) {
  RecordRead wanted{index, &record};
  read_group(std::span(&wanted, 1));
  return std::move(wanted.outcome);
}

void DatumSource::read_group(std::span<RecordRead> reads) {
  const auto desk = desks_.take(color_);
  for (RecordRead& each : reads) {
    SPEEDO_ASSERT(each.index >= 0 && each.index < size());
    const RecordExtent& extent = records_[static_cast<std::size_t>(each.index)];
    const std::size_t header = extent.page_bytes > 0 ? kValueHeaderBytes : 0;
    desk->value.resize(header + extent.value_bytes);
    each.outcome = file_.read(extent.value_offset - header, desk->value);
    const std::span<const std::byte> value(desk->value);
    if (each.outcome && header > 0) {
      each.outcome = check_value_header(file_, extent, value.first(header));
    }
    if (each.outcome) desk->group.add(value.subspan(header), each);
  }
  for (RecordRead* failed : desk->group.decode()) {
    const Error& error = failed->outcome.error();
    const RecordExtent& extent = records_[static_cast<std::size_t>(failed->index)];
    failed->outcome =
        Error{error.code, fmt::format("'{}': record {} (key '{}') {}", file_.name(), failed->index,
                                      key_of(extent), error.message)};
  }
}

}  // namespace speedo
