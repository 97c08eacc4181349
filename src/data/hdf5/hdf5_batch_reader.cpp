#include "data/hdf5/hdf5_batch_reader.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/file.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/remote_files.hpp>

#include "base/byte_order_mark.hpp"
#include "base/trimmed.hpp"
#include "data/claimed_size.hpp"
#include "data/permute.hpp"

namespace speedo {

namespace {

// A file whose tops take no more than this is kept in memory, as Caffe keeps every file; of a
// larger one only the wanted rows are read.
constexpr std::int64_t kKeptValuesMax = std::int64_t{16} << 20U;

constexpr std::size_t kListBytesMax = std::size_t{16} << 20U;

// First place for relative names is the working directory, as in Caffe; then the prototxt's folder,
// then the list's own. What a list at a URI names lies beside it.
Result<std::filesystem::path> find_listed(const std::string& name,
                                          const Hdf5BatchReader::Options& options) {
  if (!options.list_uri.empty()) return find_file(uri_beside(options.list_uri, name), {});
  SPEEDO_ASSIGN(std::filesystem::path found, find_file(name, options.base));
  std::error_code code;
  if (is_uri(name) || std::filesystem::exists(found, code)) return found;
  return resolve_path(name, options.list.parent_path());
}

// What a list names: words, as for Caffe, but for a line that is a file's name with blanks in it.
class ListedNames {
 public:
  ListedNames(const std::string& list, const Hdf5BatchReader::Options& options)
      : options_(options), lines_(std::string(without_byte_order_mark(list))) {}

  // The next one; false: there is none.
  bool next(std::string& name) {
    while (!(words_ >> name)) {
      std::string line;
      if (!std::getline(lines_, line)) return false;
      words_.clear();
      name = trimmed(line, kBlanks);
      if (name.find_first_of(kBlanks) != std::string::npos && is_file(name)) return true;
      words_.str(name);
    }
    return true;
  }

 private:
  static constexpr std::string_view kBlanks = " \t\r\v\f";

  bool is_file(const std::string& line) const {
    if (!options_.list_uri.empty() || is_uri(line)) return false;
    const auto found = find_listed(line, options_);
    std::error_code code;
    return found && std::filesystem::is_regular_file(*found, code);
  }

  const Hdf5BatchReader::Options& options_;
  std::istringstream lines_, words_;
};

}  // namespace

Hdf5BatchReader::Hdf5BatchReader(const Options& options)
    : options_(options),
      bad_files_(options.on_bad_record, options.meter, "HDF5 files"),
      bad_rows_(options.on_bad_record, options.meter) {}

Result<std::unique_ptr<BatchReader>> Hdf5BatchReader::create(const Options& options) {
  SPEEDO_ASSIGN(const std::string text, read_file(options.list, kListBytesMax));
  std::unique_ptr<Hdf5BatchReader> reader(new Hdf5BatchReader(options));
  SPEEDO_TRY(reader->add_files(text));
  if (reader->row_count_ == 0) {
    return Error{ErrorCode::kData,
                 fmt::format("the files of HDF5 list '{}' hold no rows", options.list.string())};
  }
  reader->first_row_ =
      static_cast<std::uint64_t>(options.start_fraction * static_cast<double>(reader->row_count_));
  return std::unique_ptr<BatchReader>(std::move(reader));
}

Result<void> Hdf5BatchReader::add_files(const std::string& list) {
  if (list.starts_with(kHdf5Signature)) {
    return Error{ErrorCode::kData,
                 fmt::format("HDF5 list '{}' is an HDF5 file itself: source is a text file that "
                             "names HDF5 files, one a line",
                             options_.list.string())};
  }
  ListedNames names(list, options_);
  std::uint64_t tried = 0, missed = 0;
  std::optional<Error> last;
  for (std::string name; names.next(name); ++tried) {
    auto added = add_file(name);
    if (added) {
      missed = 0;
      continue;
    }
    if (!bad_files_.pass_over(tried, added.error(), missed++)) return added;
    last = std::move(added).error();
  }
  if (!files_.empty()) return {};
  if (!last) {
    return Error{ErrorCode::kData,
                 fmt::format("HDF5 list '{}' names no file", options_.list.string())};
  }
  return Error{last->code, fmt::format("none of the {} files of HDF5 list '{}' can be read; of the "
                                       "last: {}",
                                       tried, options_.list.string(), last->message)};
}

Result<void> Hdf5BatchReader::add_file(const std::string& name) {
  SPEEDO_ASSIGN(std::filesystem::path file, find_listed(name, options_));
  SPEEDO_ASSIGN(const std::int64_t rows, inspect(file));
  files_.push_back(std::move(file));
  file_rows_.push_back(rows);
  row_count_ += static_cast<std::uint64_t>(rows);
  return {};
}

// Counts the rows of a file and checks its datasets against each other and against the first file.
Result<std::int64_t> Hdf5BatchReader::inspect(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const Hdf5Reader reader, Hdf5Reader::open(path));
  std::int64_t rows = -1;
  std::vector<Shape> shapes;
  for (const std::string& name : options_.datasets) {
    const auto fault = [&](const std::string& what) {
      return Error{ErrorCode::kData,
                   fmt::format("HDF5 file '{}': dataset '{}' {}", path.string(), name, what)};
    };
    if (!reader.is_dataset(name)) {
      SPEEDO_TRY(reader.status());
      return fault("does not exist; each top needs one of its name");
    }
    SPEEDO_ASSIGN(std::vector<std::int64_t> dims, reader.dims(name));
    if (dims.empty()) return fault("is a single value, not rows");
    SPEEDO_TRY(reader.check_size(name));
    if (rows >= 0 && dims[0] != rows) {
      return fault(
          fmt::format("has {} rows, but '{}' has {}", dims[0], options_.datasets[0], rows));
    }
    rows = dims[0];
    dims[0] = options_.batch_size;
    auto shape = Shape::create(std::move(dims));
    if (!shape) return fault("has an impossible shape: " + shape.error().message);
    if (!shapes_.empty() && shapes_[shapes.size()] != *shape) {
      return fault(fmt::format("gives batches of {}, but the first file gives {}",
                               to_string(*shape), to_string(shapes_[shapes.size()])));
    }
    shapes.push_back(std::move(shape).value());
  }
  if (options_.shuffle) {
    SPEEDO_TRY(check_memory(
        fmt::format("the order of the {} rows of HDF5 file '{}'", rows, path.string()),
        saturating_product(static_cast<std::uint64_t>(rows), sizeof(rows))));
  }
  shapes_ = std::move(shapes);
  return rows;
}

Result<std::vector<std::vector<float>>> Hdf5BatchReader::read_whole(const Hdf5Reader& reader,
                                                                    std::int64_t rows) const {
  std::vector<std::vector<float>> tops;
  for (std::size_t top = 0; top < shapes_.size(); ++top) {
    SPEEDO_ASSIGN(std::vector<float> values, reader.read_floats(options_.datasets[top]));
    if (static_cast<std::int64_t>(values.size()) != rows * shapes_[top].count(1)) {
      return Error{ErrorCode::kData, fmt::format("HDF5 file '{}' changed while it was in use",
                                                 reader.file_name())};
    }
    tops.push_back(std::move(values));
  }
  return tops;
}

Result<Hdf5BatchReader::OpenFile*> Hdf5BatchReader::open(std::size_t file) {
  if (OpenFile* const found = open_.find(file)) return found;
  SPEEDO_ASSIGN(Hdf5Reader reader, Hdf5Reader::open(files_[file]));
  std::int64_t row_values = 0;
  for (const Shape& shape : shapes_) row_values += shape.count(1);
  std::vector<std::vector<float>> tops;
  if (row_values <= kKeptValuesMax / std::max<std::int64_t>(file_rows_[file], 1)) {
    auto whole = read_whole(reader, file_rows_[file]);
    // Of a file with rows that cannot be read, the others are read one by one.
    if (!whole && options_.on_bad_record == OnBadRecord::kAbort) return std::move(whole).error();
    if (whole) tops = std::move(whole).value();
  }
  return &open_.keep(file, OpenFile{std::move(reader), std::move(tops)});
}

void Hdf5BatchReader::shuffle_epoch(std::uint64_t epoch) {
  if (file_epoch_ == epoch && !file_order_.empty()) return;
  file_epoch_ = epoch;
  permute(file_order_, files_.size(), Random::derive(options_.seed, {epoch}));
}

void Hdf5BatchReader::shuffle_rows(std::uint64_t epoch, std::size_t file) {
  if (row_epoch_ == epoch && row_file_ == file) return;
  row_epoch_ = epoch;
  row_file_ = file;
  permute(row_order_, static_cast<std::size_t>(file_rows_[file]),
          Random::derive(options_.seed, {epoch, file + 1}));
}

Hdf5BatchReader::Place Hdf5BatchReader::locate(std::uint64_t position) {
  const std::uint64_t epoch = position / row_count_;
  auto row = static_cast<std::int64_t>(position % row_count_);
  if (options_.shuffle) shuffle_epoch(epoch);
  std::size_t turn = 0, file = options_.shuffle ? file_order_[0] : 0;
  while (row >= file_rows_[file]) {
    row -= file_rows_[file];
    ++turn;
    file = options_.shuffle ? file_order_[turn] : turn;
  }
  if (!options_.shuffle) return {file, row, file_rows_[file] - row};
  shuffle_rows(epoch, file);
  return {file, row_order_[static_cast<std::size_t>(row)], 1};
}

// Into the tops' rows from `target` on.
Result<void> Hdf5BatchReader::read_run(const Place& place, std::int64_t count, std::int64_t target,
                                       BatchTops& tops) {
  SPEEDO_ASSIGN(OpenFile* const file, open(place.file));
  for (std::size_t top = 0; top < tops.size(); ++top) {
    const std::int64_t row_values = shapes_[top].count(1);
    const std::span<float> values =
        tops[top].subspan(static_cast<std::size_t>(target * row_values),
                          static_cast<std::size_t>(count * row_values));
    if (file->tops.empty()) {
      SPEEDO_TRY(file->reader.read_rows(options_.datasets[top], place.row, count, values));
    } else {
      std::copy_n(file->tops[top].begin() + place.row * row_values, values.size(), values.begin());
    }
  }
  return {};
}

// The row at that position of the stream, or the next one that can be read.
Result<void> Hdf5BatchReader::read_good_row(std::uint64_t position, std::int64_t target,
                                            BatchTops& tops) {
  for (std::uint64_t missed = 0;; ++missed) {
    const Place place = locate(position + missed);
    auto read = read_run(place, 1, target, tops);
    if (read) return {};
    const auto before = file_rows_.begin() + static_cast<std::ptrdiff_t>(place.file);
    const auto row = static_cast<std::uint64_t>(
        std::accumulate(file_rows_.begin(), before, place.row));
    const bool all = missed + 1 == row_count_;
    if (all || !bad_rows_.pass_over(row, read.error(), missed)) return read;
  }
}

Result<void> Hdf5BatchReader::read(std::uint64_t batch, std::int64_t part, BatchTops& tops) {
  SPEEDO_ASSERT(part == 0);
  const std::uint64_t start = batch * static_cast<std::uint64_t>(options_.batch_size) + first_row_;
  for (std::int64_t done = 0; done < options_.batch_size;) {
    const std::uint64_t position = start + static_cast<std::uint64_t>(done);
    const Place place = locate(position);
    const std::int64_t count = std::min(place.run, options_.batch_size - done);
    const auto read = read_run(place, count, done, tops);
    if (!read && options_.on_bad_record == OnBadRecord::kAbort) return read;
    for (std::int64_t i = 0; !read && i < count; ++i) {
      SPEEDO_TRY(read_good_row(position + static_cast<std::uint64_t>(i), done + i, tops));
    }
    done += count;
  }
  return {};
}

}  // namespace speedo
