#include "data/csv.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/limits.hpp>

#include "base/byte_order_mark.hpp"
#include "base/parse_number.hpp"
#include "base/shown_text.hpp"
#include "base/trimmed.hpp"
#include "data/claimed_size.hpp"
#include "data/memory_source.hpp"
#include "data/random_file.hpp"

namespace speedo {

namespace {

constexpr std::string_view kAroundFields = " \t\r\"";

std::vector<std::string_view> split(std::string_view line, char delimiter) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t end = line.find(delimiter, begin);
    fields.push_back(trimmed(line.substr(begin, end - begin), kAroundFields));
    if (end == std::string_view::npos) return fields;
    begin = end + 1;
  }
}

// Of a field, as much as an error needs.
std::string shown(std::string_view field) {
  constexpr std::size_t kShownMax = 40;
  if (field.size() <= kShownMax) return shown_text(field);
  return shown_text(field.substr(0, kShownMax)) + "...";
}

class CsvParser {
 public:
  CsvParser(std::string file, const CsvOptions& options)
      : file_(std::move(file)), options_(options) {}

  Result<std::vector<Record>> parse(std::string_view text) {
    std::vector<Record> records;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line_;
      if (trimmed(line, kAroundFields).empty() || (line_ == 1 && options_.header)) continue;
      SPEEDO_ASSIGN(Record record, parse_line(split(line, options_.delimiter)));
      records.push_back(std::move(record));
    }
    if (records.empty()) return Error{ErrorCode::kData, fmt::format("'{}' holds no rows", file_)};
    return records;
  }

 private:
  Error fault(std::size_t column, const std::string& what) const {
    return Error{ErrorCode::kData,
                 fmt::format("'{}' line {}, column {}: {}", file_, line_, column + 1, what)};
  }

  template <class Number>
  Result<Number> number(const std::vector<std::string_view>& fields, std::size_t column) const {
    const std::string_view field = fields[column];
    const bool has_plus = field.starts_with('+') && !field.starts_with("+-");
    const auto value = parse_number<Number>(field.substr(has_plus ? 1 : 0));
    if (!value || !std::isfinite(*value)) {
      return fault(column, fmt::format("'{}' is not a number", shown(field)));
    }
    return *value;
  }

  // The first row fixes how many columns there are.
  Result<void> check_columns(std::size_t columns) {
    if (columns_ == 0) {
      if (columns < 2 && options_.dims == ImageDims{}) {
        return fault(0, fmt::format("a row needs a value and a label: check the delimiter '{}'",
                                    options_.delimiter));
      }
      ImageDims& dims = options_.dims;
      if (dims == ImageDims{}) dims = {static_cast<std::int64_t>(columns) - 1, 1, 1};
      columns_ = static_cast<std::size_t>(dims.channels * dims.height * dims.width) + 1;
    }
    if (columns == columns_) return {};
    return fault(
        columns - 1,
        fmt::format("the row has {} columns, but {}x{}x{} values and a label need {} (check "
                    "the delimiter '{}')",
                    columns, options_.dims.channels, options_.dims.height, options_.dims.width,
                    columns_, options_.delimiter));
  }

  Result<Record> parse_line(const std::vector<std::string_view>& fields) {
    SPEEDO_TRY(check_columns(fields.size()));
    Record record;
    record.channels = options_.dims.channels;
    record.height = options_.dims.height;
    record.width = options_.dims.width;
    const std::size_t label_column = options_.label_first ? 0 : fields.size() - 1;
    // Not as a float, which is a whole number where what was written is not, and 2^24 beyond it.
    SPEEDO_ASSIGN(const double label, number<double>(fields, label_column));
    if (label != std::trunc(label) || std::fabs(label) > 16777216.0) {
      return fault(label_column, fmt::format("label '{}' is not a whole number up to 2^24",
                                             shown(fields[label_column])));
    }
    record.label = static_cast<std::int64_t>(label);
    for (std::size_t column = 0; column < fields.size(); ++column) {
      if (column != label_column) SPEEDO_TRY(add_value(fields, column, record));
    }
    return record;
  }

  Result<void> add_value(const std::vector<std::string_view>& fields, std::size_t column,
                         Record& record) const {
    SPEEDO_ASSIGN(const float raw, number<float>(fields, column));
    const float value = raw * options_.scale + options_.offset;
    if (options_.floats) {
      record.floats.push_back(value);
      return {};
    }
    const float rounded = std::nearbyint(value);
    if (!(rounded >= 0.0F && rounded <= 255.0F)) {
      return fault(column,
                   fmt::format("{} becomes {}, which is no byte 0..255: choose another scale "
                               "and offset, or keep floats",
                               shown(fields[column]), value));
    }
    const bool is_meant = options_.scale != 1.0F || options_.offset != 0.0F;
    if (rounded != value && !is_meant) {
      return fault(column, fmt::format("'{}' is no whole number, and a byte holds no other: keep "
                                       "floats, or choose a scale and offset that make bytes of it",
                                       shown(fields[column])));
    }
    record.bytes.push_back(static_cast<std::uint8_t>(rounded));
    return {};
  }

  std::string file_;
  CsvOptions options_;
  std::size_t line_ = 0, columns_ = 0;
};

Result<void> check_dims(const ImageDims& dims) {
  if (dims == ImageDims{}) return {};
  if (dims.channels < 1 || dims.height < 1 || dims.width < 1 ||
      dims.height > kBlobElementsMax / dims.channels ||
      dims.width > kBlobElementsMax / (dims.channels * dims.height)) {
    return Error{ErrorCode::kConfig, fmt::format("impossible record dims {}x{}x{}", dims.channels,
                                                 dims.height, dims.width)};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DataSource>> open_csv(const std::filesystem::path& path,
                                             const CsvOptions& options) {
  SPEEDO_TRY(check_dims(options.dims));
  SPEEDO_ASSIGN(const RandomFile file, RandomFile::open_unpacked(path, kUnpackedBytesMax));
  SPEEDO_TRY(check_memory(fmt::format("table '{}', which is read as a whole,", file.name()),
                          file.bytes()));
  std::string text(file.bytes(), '\0');
  SPEEDO_TRY(file.read(0, std::as_writable_bytes(std::span(text))));
  SPEEDO_ASSIGN(std::vector<Record> records,
                CsvParser(file.name(), options).parse(without_byte_order_mark(text)));
  return std::unique_ptr<DataSource>(std::make_unique<MemorySource>(std::move(records)));
}

}  // namespace speedo
