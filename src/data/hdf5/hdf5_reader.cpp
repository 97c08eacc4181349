#include "data/hdf5/hdf5_file.hpp"

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>
#include <speedo/base/limits.hpp>

#include "base/input_roots.hpp"
#include "data/claimed_size.hpp"
#include "data/hdf5/hdf5_access.hpp"
#include "data/hdf5/hdf5_in_helper.hpp"
#include "data/hdf5/hdf5_library.hpp"
#include "data/parser/parser_processes.hpp"

namespace speedo {

Error hdf5_fault(const std::string& file, const std::string& object, const std::string& what) {
  return {ErrorCode::kData, fmt::format("HDF5 file '{}': '{}' {}", file, object, what)};
}

Error unreadable_hdf5(const std::string& file) {
  return {ErrorCode::kData, fmt::format("'{}' is not a readable HDF5 file (empty, truncated or of "
                                        "another format); make it again",
                                        file)};
}

Hdf5Reader::Hdf5Reader(std::unique_ptr<Hdf5Access> access, std::string file_name)
    : access_(std::move(access)), file_name_(std::move(file_name)) {}

Hdf5Reader::Hdf5Reader(Hdf5Reader&& other) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&& other) noexcept = default;
Hdf5Reader::~Hdf5Reader() = default;

Result<Hdf5Reader> Hdf5Reader::open(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code) && code != std::errc::permission_denied) {
    return Error{ErrorCode::kNotFound, fmt::format("HDF5 file '{}' does not exist", path.string())};
  }
  if (::access(path.c_str(), R_OK) != 0 && errno == EACCES) {
    return Error{ErrorCode::kRefused,
                 fmt::format("HDF5 file '{}' may not be read: permission denied", path.string())};
  }
  SPEEDO_TRY(check_input(path));
  SPEEDO_ASSIGN(std::optional<HelperLoan> parser, take_parser());
  auto opened = parser ? open_hdf5_in_helper(*std::move(parser), path) : Hdf5Library::open(path);
  if (!opened) return std::move(opened).error();
  return Hdf5Reader(std::move(*opened), path.string());
}

bool Hdf5Reader::answer(Result<bool> asked) const {
  if (asked) return *asked;
  if (!failure_) failure_ = std::move(asked).error();
  return false;
}

Result<void> Hdf5Reader::status() const {
  return failure_ ? Result<void>(*failure_) : Result<void>();
}

bool Hdf5Reader::has(const std::string& path) const { return answer(access_->has(path)); }

bool Hdf5Reader::is_dataset(const std::string& path) const {
  return answer(access_->is_dataset(path));
}

Result<std::vector<std::string>> Hdf5Reader::children(const std::string& group) const {
  return access_->children(group);
}

Result<std::vector<std::int64_t>> Hdf5Reader::dims(const std::string& dataset) const {
  return access_->dims(dataset);
}

Result<void> Hdf5Reader::check_size(const std::string& dataset) const {
  return access_->check_size(dataset);
}

Result<void> Hdf5Reader::read_rows(const std::string& dataset, std::int64_t first,
                                   std::int64_t count, std::span<float> target) const {
  return access_->read_rows(dataset, first, count, target);
}

Result<std::vector<float>> Hdf5Reader::read_floats(const std::string& dataset) const {
  SPEEDO_ASSIGN(const std::vector<std::int64_t> extents, dims(dataset));
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  if (count > kBlobElementsMax) {
    return hdf5_fault(file_name_, dataset,
                      fmt::format("has {} values, more than a blob may have", count));
  }
  SPEEDO_TRY(check_size(dataset));
  SPEEDO_TRY(check_memory(fmt::format("HDF5 file '{}': '{}'", file_name_, dataset),
                          static_cast<std::uint64_t>(count) * sizeof(float)));
  std::vector<float> values(static_cast<std::size_t>(count));
  SPEEDO_TRY(read_rows(dataset, 0, extents.empty() ? 1 : extents[0], values));
  return values;
}

Result<std::int64_t> Hdf5Reader::read_integer(const std::string& dataset) const {
  return access_->read_integer(dataset);
}

Result<std::string> Hdf5Reader::read_string(const std::string& dataset) const {
  return access_->read_string(dataset);
}

}  // namespace speedo
