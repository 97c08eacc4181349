#include "data/hdf5/hdf5_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/folder.hpp>

#include "base/output_root.hpp"
#include "base/write_fault.hpp"
#include "data/hdf5/hdf5_handle.hpp"
#include "data/hdf5/hdf5_output.hpp"

namespace speedo {

namespace {

// A chunk of about this size keeps both sequential reads and single rows quick.
constexpr std::int64_t kChunkValues = 65536;

std::vector<hsize_t> extents_of(std::span<const std::int64_t> dims) {
  return {dims.begin(), dims.end()};
}

hid_t parents_created() {
  const hid_t list = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(list, 1);
  return list;
}

// Makes the room for `rows` more rows in an existing dataset. Returns the first new row, or -1.
std::int64_t extend(hid_t data, std::vector<hsize_t>& extents, hsize_t rows) {
  const Hdf5Handle space(H5Dget_space(data), H5Sclose);
  std::vector<hsize_t> current(extents.size());
  if (H5Sget_simple_extent_ndims(space.get()) != static_cast<int>(extents.size())) return -1;
  if (H5Sget_simple_extent_dims(space.get(), current.data(), nullptr) < 0) return -1;
  const hsize_t first = current[0];
  current[0] += rows;
  if (H5Dset_extent(data, current.data()) < 0) return -1;
  return static_cast<std::int64_t>(first);
}

hid_t create_growing(hid_t file, const std::string& path, const std::vector<hsize_t>& extents,
                     std::int64_t row_values) {
  std::vector<hsize_t> none = extents, unlimited = extents, chunk = extents;
  none[0] = 0;
  unlimited[0] = H5S_UNLIMITED;
  chunk[0] = static_cast<hsize_t>(std::clamp<std::int64_t>(kChunkValues / row_values, 1, 4096));
  const Hdf5Handle space(
      H5Screate_simple(static_cast<int>(extents.size()), none.data(), unlimited.data()), H5Sclose);
  const Hdf5Handle layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(layout.get(), static_cast<int>(extents.size()), chunk.data());
  const Hdf5Handle links(parents_created(), H5Pclose);
  return H5Dcreate2(file, path.c_str(), H5T_IEEE_F32LE, space.get(), links.get(), layout.get(),
                    H5P_DEFAULT);
}

}  // namespace

Hdf5Writer::Hdf5Writer(std::int64_t file, std::shared_ptr<Hdf5Output> output,
                       std::filesystem::path path, Temporary temporary)
    : file_(file),
      output_(std::move(output)),
      path_(std::move(path)),
      temporary_(std::move(temporary)) {}

Hdf5Writer::Hdf5Writer(Hdf5Writer&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      output_(std::move(other.output_)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)) {}

Hdf5Writer::~Hdf5Writer() {
  if (file_ >= 0) close();
}

// Whether all is in the file. What the library does not let go of takes no room on the disk either.
bool Hdf5Writer::close() {
  const Hdf5Lock lock;
  const bool is_closed = H5Fclose(std::exchange(file_, -1)) >= 0 && output_->is_closed;
  output_->descriptor = Descriptor(-1);
  return is_closed && output_->failure == 0;
}

Error Hdf5Writer::fault(const std::string& object) const {
  const std::string reason =
      output_->failure != 0 ? write_fault(output_->failure) : "is the disk full?";
  return Error{ErrorCode::kCannotWrite, fmt::format("HDF5 file '{}': '{}' cannot be written ({})",
                                                    path_.string(), object, reason)};
}

// What the library says, and what it was not told.
Result<void> Hdf5Writer::outcome(bool is_done, const std::string& object) const {
  if (is_done && output_->failure == 0) return {};
  return fault(object);
}

Result<Hdf5Writer> Hdf5Writer::create(const std::filesystem::path& path) {
  SPEEDO_TRY(check_output(path));
  std::error_code code;
  auto temporary = Temporary::path_beside(behind_links(path), code);
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const auto output = std::make_shared<Hdf5Output>();
  if (temporary) output->descriptor = Descriptor(::open(temporary->path().c_str(), kFlags, 0666));
  const Hdf5Lock lock;
  const hid_t file = output->descriptor.get() >= 0 ? create_hdf5_output(output) : H5I_INVALID_HID;
  if (file < 0) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("cannot write '{}': does its folder exist, with room on its disk, and "
                             "may it be written to?",
                             path.string())};
  }
  return Hdf5Writer(file, output, path, std::move(*temporary));
}

Result<void> Hdf5Writer::add_group(const std::string& path) {
  const Hdf5Lock lock;
  std::size_t end = 0;
  while (end != std::string::npos) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (H5Lexists(file_, part.c_str(), H5P_DEFAULT) > 0) continue;
    const Hdf5Handle group(H5Gcreate2(file_, part.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                           H5Gclose);
    if (!group) return fault(path);
  }
  return outcome(true, path);
}

Result<void> Hdf5Writer::add_dataset(const std::string& path, std::span<const std::int64_t> dims,
                                     std::int64_t file_type, std::int64_t memory_type,
                                     const void* values) {
  const Hdf5Lock lock;
  const std::vector<hsize_t> extents = extents_of(dims);
  const Hdf5Handle space(
      extents.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
      H5Sclose);
  const Hdf5Handle links(parents_created(), H5Pclose);
  const Hdf5Handle data(H5Dcreate2(file_, path.c_str(), file_type, space.get(), links.get(),
                                   H5P_DEFAULT, H5P_DEFAULT),
                        H5Dclose);
  if (!data) return fault(path);
  return outcome(H5Dwrite(data.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
                 path);
}

Result<void> Hdf5Writer::add_floats(const std::string& path, std::span<const std::int64_t> dims,
                                    std::span<const float> values) {
  return add_dataset(path, dims, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data());
}

Result<void> Hdf5Writer::add_doubles(const std::string& path, std::span<const std::int64_t> dims,
                                     std::span<const double> values) {
  return add_dataset(path, dims, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data());
}

Result<void> Hdf5Writer::add_integers(const std::string& path, std::span<const int> values) {
  const std::int64_t count = static_cast<std::int64_t>(values.size());
  return add_dataset(path, std::span(&count, 1), H5T_STD_I32LE, H5T_NATIVE_INT, values.data());
}

Result<void> Hdf5Writer::add_string(const std::string& path, const std::string& value) {
  const Hdf5Lock lock;
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  return add_dataset(path, {}, type.get(), type.get(), value.c_str());
}

Result<void> Hdf5Writer::add_rows(const std::string& path, std::span<const std::int64_t> row_dims,
                                  std::span<const float> values) {
  const Hdf5Lock lock;
  std::int64_t row_values = 1;
  for (const std::int64_t extent : row_dims) row_values *= extent;
  SPEEDO_ASSERT(row_values > 0);
  SPEEDO_ASSERT(static_cast<std::int64_t>(values.size()) % row_values == 0);
  std::vector<hsize_t> extents = extents_of(row_dims);
  extents.insert(extents.begin(), values.size() / static_cast<std::size_t>(row_values));
  const bool present = H5Lexists(file_, path.c_str(), H5P_DEFAULT) > 0;
  const Hdf5Handle data(present ? H5Dopen2(file_, path.c_str(), H5P_DEFAULT)
                                : create_growing(file_, path, extents, row_values),
                        H5Dclose);
  if (!data) return fault(path);
  const std::int64_t first = extend(data.get(), extents, extents[0]);
  if (first < 0) return fault(path);
  std::vector<hsize_t> start(extents.size(), 0);
  start[0] = static_cast<hsize_t>(first);
  const Hdf5Handle target(H5Dget_space(data.get()), H5Sclose);
  const Hdf5Handle memory(
      H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
  const bool is_done = H5Sselect_hyperslab(target.get(), H5S_SELECT_SET, start.data(), nullptr,
                                           extents.data(), nullptr) >= 0 &&
                       H5Dwrite(data.get(), H5T_NATIVE_FLOAT, memory.get(), target.get(),
                                H5P_DEFAULT, values.data()) >= 0;
  return outcome(is_done, path);
}

Result<void> Hdf5Writer::commit() {
  if (!close()) return fault("/");
  return temporary_.put_in_place();
}

}  // namespace speedo
