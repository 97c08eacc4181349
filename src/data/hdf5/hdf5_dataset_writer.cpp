#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/file.hpp>
#include <speedo/base/folder.hpp>

#include "base/parse_number.hpp"
#include "base/whole_path.hpp"
#include "data/dataset_writer.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/image/transformer.hpp"

namespace speedo {

namespace {

// Rows are gathered up to this many values, then written in one piece.
constexpr std::size_t kBufferedValues = std::size_t{1} << 20U;

bool is_hdf5_file(const std::filesystem::path& file) {
  std::string head(kHdf5Signature.size(), '\0');
  std::ifstream stream(file, std::ios::binary);
  return stream.read(head.data(), static_cast<std::streamsize>(head.size())) &&
         head == kHdf5Signature;
}

enum class Hdf5Part { kList, kData };

// What is there may be replaced with force, if it is of the same kind: another list's data are
// none, and another list is no data.
Result<void> check_replaced(const std::filesystem::path& file, Hdf5Part part, bool force) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return {};
  const auto refused = [&](const char* what) {
    return Error{ErrorCode::kCannotWrite, fmt::format("'{}' {}", file.string(), what)};
  };
  if (!force) return refused("exists already; remove it or use --force");
  if (!std::filesystem::is_regular_file(file, code)) return {};
  const bool is_data = is_hdf5_file(file);
  if (part == Hdf5Part::kList && is_data) {
    return refused(
        "is an HDF5 file, perhaps another list's data, and a list would replace it: give the "
        "output another name, or remove it");
  }
  if (part == Hdf5Part::kData && !is_data) {
    return refused(
        "is no HDF5 file, perhaps another list, and data would replace it: give the output "
        "another name, or remove it");
  }
  return {};
}

class Hdf5DatasetWriter : public DatasetWriter {
 public:
  explicit Hdf5DatasetWriter(const ConvertOptions& options) : options_(options) {}

  Result<void> add(const std::string& key, const RecordRead& read) override {
    const Record& record = *read.record;
    const ImageDims dims{record.channels, record.height, record.width};
    if (labels_written_ + labels_.size() == 0 && parts_.empty()) dims_ = dims;
    if (dims != dims_) {
      return Error{ErrorCode::kData,
                   fmt::format("record {} is {}x{}x{}, but the first is {}x{}x{}: HDF5 data need "
                               "images of one size",
                               key, dims.channels, dims.height, dims.width, dims_.channels,
                               dims_.height, dims_.width)};
    }
    SPEEDO_TRY(make_room(record.count()));
    values_.insert(values_.end(), record.bytes.begin(), record.bytes.end());
    values_.insert(values_.end(), record.floats.begin(), record.floats.end());
    labels_.push_back(static_cast<float>(record.label));
    return values_.size() < kBufferedValues ? Result<void>() : flush();
  }

  Result<void> commit() override {
    SPEEDO_TRY(finish_part());
    std::string list;
    for (const std::filesystem::path& part : parts_) list += part.string() + "\n";
    return write_file_atomically(options_.output, list);
  }

 private:
  std::filesystem::path part_name() const {
    return options_.output.parent_path() /
           fmt::format("{}_{}.h5", options_.output.stem().string(), parts_.size());
  }

  // Starts the next file when the present one would grow beyond the limit.
  Result<void> make_room(std::int64_t values) {
    const auto present = static_cast<std::int64_t>(labels_written_ + labels_.size());
    const std::int64_t bytes =
        (present + 1) * (values + 1) * static_cast<std::int64_t>(sizeof(float));
    if (present > 0 && bytes > options_.hdf5_file_bytes_max) SPEEDO_TRY(finish_part());
    if (part_) return {};
    const std::filesystem::path name = part_name();
    SPEEDO_TRY(check_replaced(name, Hdf5Part::kData, options_.force));
    SPEEDO_ASSIGN(Hdf5Writer writer, Hdf5Writer::create(name));
    part_.emplace(std::move(writer));
    return {};
  }

  Result<void> flush() {
    if (labels_.empty()) return {};
    const std::int64_t dims[] = {dims_.channels, dims_.height, dims_.width};
    SPEEDO_TRY(part_->add_rows("data", dims, values_));
    SPEEDO_TRY(part_->add_rows("label", {}, labels_));
    labels_written_ += labels_.size();
    values_.clear();
    labels_.clear();
    return {};
  }

  Result<void> finish_part() {
    SPEEDO_TRY(flush());
    if (!part_) return {};
    const std::filesystem::path name = part_name();
    SPEEDO_TRY(part_->commit());
    part_.reset();
    parts_.push_back(name);
    labels_written_ = 0;
    return {};
  }

  ConvertOptions options_;
  ImageDims dims_;
  std::vector<std::filesystem::path> parts_;
  std::optional<Hdf5Writer> part_;
  std::vector<float> values_, labels_;
  std::size_t labels_written_ = 0;  // in the present part
};

}  // namespace

Result<std::unique_ptr<DatasetWriter>> make_hdf5_dataset_writer(const ConvertOptions& options) {
  SPEEDO_TRY(check_replaced(options.output, Hdf5Part::kList, options.force));
  return std::unique_ptr<DatasetWriter>(std::make_unique<Hdf5DatasetWriter>(options));
}

std::optional<std::pair<std::string, std::string>> clashing_hdf5_outputs(
    std::span<const std::string> outputs) {
  using std::filesystem::path;
  std::map<path, std::string> by_stem;  // what the names of an output's data begin with
  for (const std::string& output : outputs) {
    const auto [place, is_new] =
        by_stem.emplace(whole_path(folder_of(output)) / path(output).stem(), output);
    if (!is_new) return std::pair(place->second, output);
  }
  for (const std::string& output : outputs) {
    const path whole = whole_path(output);
    const std::string stem = whole.stem().string();
    const std::size_t cut = stem.rfind('_');
    if (whole.extension() != ".h5" || cut == std::string::npos ||
        !parse_number<std::uint64_t>(stem.substr(cut + 1))) {
      continue;
    }
    const auto found = by_stem.find(whole.parent_path() / stem.substr(0, cut));
    if (found != by_stem.end()) return std::pair(found->second, output);
  }
  return std::nullopt;
}

}  // namespace speedo
