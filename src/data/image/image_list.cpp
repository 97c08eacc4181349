#include "data/image/image_list.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/file.hpp>

#include "base/byte_order_mark.hpp"
#include "base/parse_number.hpp"
#include "data/image/resize.hpp"
#include "data/record_group.hpp"

namespace speedo {

namespace {

constexpr std::size_t kListTextBytesMax = std::size_t{2} << 30U;
constexpr std::size_t kImageNameBytesMax = 4096;  // the system's limit for a path
constexpr std::string_view kBlanks = " \t\r";

// Also "+1" and "1.0", which are 1 to C's atoi() too.
std::optional<std::int32_t> label_of(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const std::size_t point = text.find('.');
  const bool is_whole =
      point != std::string_view::npos && text.find_first_not_of('0', point + 1) == text.npos;
  return parse_number<std::int32_t>(is_whole ? text.substr(0, point) : text);
}

}  // namespace

std::string ImageList::place_at(std::size_t offset) const {
  const auto line =
      1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  return fmt::format("image list '{}' line {}", path_, line);
}

Result<void> ImageList::add_line(std::size_t offset, std::size_t end) {
  const std::string_view whole = std::string_view(text_).substr(offset, end - offset);
  const std::size_t last = whole.find_last_not_of(kBlanks);
  if (last == std::string_view::npos) return {};
  const std::string_view line = whole.substr(0, last + 1);
  const std::size_t blank = line.find_last_of(kBlanks);
  std::string_view name = line;
  Entry entry;
  entry.offset = offset;
  if (blank != std::string_view::npos && line.find_first_not_of(kBlanks) < blank) {
    const auto label = label_of(line.substr(blank + 1));
    if (!label) {
      return Error{ErrorCode::kData,
                   fmt::format("{} has the label '{}', not a whole number: lines are FILE LABEL",
                               place_at(offset), line.substr(blank + 1))};
    }
    entry.label = *label;
    name = line.substr(0, line.find_last_not_of(kBlanks, blank) + 1);
  }
  if (name.size() > kImageNameBytesMax || name.find('\0') != std::string_view::npos) {
    return Error{
        ErrorCode::kData,
        fmt::format("{} names no file: it is not a text of lines FILE LABEL", place_at(offset))};
  }
  entry.bytes = static_cast<std::uint32_t>(name.size());
  entries_.push_back(entry);
  return {};
}

Result<ImageList> ImageList::read(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(std::string text, read_file(path, kListTextBytesMax));
  ImageList list(path.string(), std::move(text));
  const std::size_t begin = list.text_.size() - without_byte_order_mark(list.text_).size();
  for (std::size_t offset = begin; offset < list.text_.size();) {
    const std::size_t end = std::min(list.text_.find('\n', offset), list.text_.size());
    SPEEDO_TRY(list.add_line(offset, end));
    offset = end + 1;
  }
  if (!list.entries_.empty()) return list;
  return Error{ErrorCode::kData, fmt::format("image list '{}' names no image: it needs a line "
                                             "'FILE LABEL' for each",
                                             path.string())};
}

std::string_view ImageList::name(std::int64_t index) const {
  return std::string_view(text_).substr(entry(index).offset, entry(index).bytes);
}

std::string ImageList::place(std::int64_t index) const { return place_at(entry(index).offset); }

// Caffe puts the root before a name as it is, so that one without a slash makes other names.
Error ImageListSource::error_at(std::int64_t index, const Error& error) const {
  const std::string& root = options_.root;
  const bool joins = error.code == ErrorCode::kNotFound && !root.empty() && root.back() != '/';
  return {error.code,
          fmt::format("{}: {}{}", list_.place(index), error.message,
                      joins ? fmt::format("; '{}' stands before each name as it is: end it with a "
                                          "'/' if it is a folder",
                                          root)
                            : "")};
}

Result<std::string> ImageListSource::read_image_file(std::int64_t index) const {
  SPEEDO_ASSERT(index >= 0 && index < size());
  auto file = speedo::read_image_file(file_name(index), options_.base);
  if (!file) return error_at(index, file.error());
  return file;
}

Result<void> ImageListSource::read(std::int64_t index, Record& record) {
  RecordRead wanted{index, &record};
  read_group(std::span(&wanted, 1));
  return std::move(wanted.outcome);
}

void ImageListSource::read_group(std::span<RecordRead> reads) {
  std::vector<ImageRead> images;
  for (const RecordRead& read : reads) images.push_back({file_name(read.index), read.record});
  read_images_together(
      images, options_.color,
      [&](std::size_t i) -> Result<std::shared_ptr<const std::string>> {
        SPEEDO_ASSIGN(std::string file, speedo::read_image_file(images[i].name, options_.base));
        return std::make_shared<const std::string>(std::move(file));
      },
      [&](std::size_t i, Result<void> outcome) {
        reads[i].outcome = finish(reads[i].index, std::move(outcome), *reads[i].record);
      });
}

// What is left to do with an image that was read.
Result<void> ImageListSource::finish(std::int64_t index, Result<void> read, Record& record) const {
  if (!read) return error_at(index, read.error());
  record.label = list_.label(index);
  if (options_.height > 0) resize_image(record, options_.height, options_.width);
  return {};
}

}  // namespace speedo
