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

// Of a record's value, with its place before what is wrong.
Error DatumSource::fault(std::int64_t index, const Error& error) const {
  const RecordExtent& extent = records_[static_cast<std::size_t>(index)];
  std::string key(std::min<std::size_t>(extent.key_bytes, kShownKeyBytes), '\0');
  const bool is_read =
      file_.read(extent.key_offset, std::as_writable_bytes(std::span(key))).has_value();
  return {error.code, fmt::format("'{}': record {} (key '{}') {}", file_.name(), index,
                                  is_read ? printable_key(key) : "?", error.message)};
}

Result<std::span<const std::byte>> DatumSource::value_of(std::int64_t index, Desk& desk) const {
  SPEEDO_ASSERT(index >= 0 && index < size());
  const RecordExtent& extent = records_[static_cast<std::size_t>(index)];
  const std::size_t header = extent.page_bytes > 0 ? kValueHeaderBytes : 0;
  desk.value.resize(header + extent.value_bytes);
  SPEEDO_TRY(file_.read(extent.value_offset - header, desk.value));
  const std::span<const std::byte> value(desk.value);
  if (header > 0) SPEEDO_TRY(check_value_header(file_, extent, value.first(header)));
  return value.subspan(header);
}

Result<void> DatumSource::read(std::int64_t index, Record& record) {
  RecordRead wanted{index, &record};
  read_group(std::span(&wanted, 1));
  return std::move(wanted.outcome);
}

Result<bool> DatumSource::read_datum(std::int64_t index, std::string& datum) {
  const auto desk = desks_.take(color_);
  SPEEDO_ASSIGN(const std::span<const std::byte> value, value_of(index, *desk));
  datum.assign(reinterpret_cast<const char*>(value.data()), value.size());
  return true;
}

void DatumSource::read_group(std::span<RecordRead> reads) {
  const auto desk = desks_.take(color_);
  desk->group.read(
      reads, [&](std::int64_t index) { return value_of(index, *desk); },
      [this](std::int64_t index, const Error& error) { return fault(index, error); });
}

}  // namespace speedo
