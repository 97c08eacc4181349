#include "data/hdf5/hdf5_library.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "base/input_roots.hpp"
#include "data/claimed_size.hpp"
#include "data/hdf5/hdf5_descriptor.hpp"
#include "data/hdf5/hdf5_handle.hpp"
#include "data/hdf5/hdf5_text.hpp"

namespace speedo {

namespace {

// A step of the path that is missing, or no group, is an error of the library's.
bool exists(hid_t file, const std::string& path) {
  return path.empty() || path == "/" || H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0;
}

// Links into other files, which the library would open. In a process that has confined its inputs
// once it never follows them again.
void refuse_external_links() {
  [[maybe_unused]] static const bool done = H5open() >= 0 && H5Lunregister(H5L_TYPE_EXTERNAL) >= 0;
}

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

// Of the filters that a dataset's chunks went through. What one has packed, another one packs no
// further: the best of them counts.
std::uint64_t compression_ratio_max(hid_t creation) {
  std::uint64_t ratio = 1;
  const int filters = H5Pget_nfilters(creation);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values,
                                               nullptr, 0, nullptr, &config);
    if (filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_FLETCHER32) continue;
    ratio = std::max(ratio, filter == H5Z_FILTER_DEFLATE ? kDeflateRatioMax : kOtherFilterRatioMax);
  }
  return ratio;
}

// Nothing tells how much other files hold, and a file of others could name any of this machine.
bool is_elsewhere(hid_t creation) {
  return H5Pget_layout(creation) == H5D_VIRTUAL || H5Pget_external_count(creation) > 0;
}

// The most bytes that what a file of `file_bytes` stores of a dataset can unpack to.
std::uint64_t capacity_of(hid_t data, hid_t creation, std::uint64_t file_bytes) {
  const std::uint64_t stored = std::min<std::uint64_t>(H5Dget_storage_size(data), file_bytes);
  return saturating_product(stored, compression_ratio_max(creation));
}

// Of one chunk, which the library holds in memory as a whole; 0 if there are none.
std::uint64_t chunk_bytes_of(hid_t creation, std::uint64_t element_bytes) {
  if (H5Pget_layout(creation) != H5D_CHUNKED) return 0;
  std::vector<hsize_t> extents(kBlobAxesMax);
  const int rank = H5Pget_chunk(creation, kBlobAxesMax, extents.data());
  std::uint64_t bytes = element_bytes;
  for (int axis = 0; axis < std::min(rank, kBlobAxesMax); ++axis) {
    bytes = saturating_product(bytes, extents[static_cast<std::size_t>(axis)]);
  }
  return bytes;
}

// Of a file that the library has opened by its name; 0: it does not say.
std::uint64_t bytes_of(hid_t file) {
  void* handle = nullptr;
  struct stat status {};
  if (H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0 || handle == nullptr) return 0;
  if (::fstat(*static_cast<int*>(handle), &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

// Then the library gives zeros for what is gone.
bool Hdf5Library::is_cut() const { return bytes_ != 0 && bytes_of(file_) < bytes_; }

Hdf5Library::~Hdf5Library() {
  const Hdf5Lock lock;
  H5Fclose(file_);
}

Error Hdf5Library::fault(const std::string& object, const std::string& what) const {
  return hdf5_fault(file_name_, object, what);
}

Result<std::unique_ptr<Hdf5Access>> Hdf5Library::open(const std::filesystem::path& path) {
  // The library opens by name: where files are confined, by the name of what was opened for it.
  const Hdf5Lock lock;
  std::string name = path.string();
  std::optional<Descriptor> opened;
  if (are_inputs_confined()) {
    refuse_external_links();
    SPEEDO_ASSIGN(opened, open_input(path));
    name = fmt::format("/proc/self/fd/{}", opened->get());
  }
  const hid_t file = H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return unreadable_hdf5(path.string());
  return std::unique_ptr<Hdf5Access>(new Hdf5Library(file, path.string(), bytes_of(file)));
}

Result<std::unique_ptr<Hdf5Access>> Hdf5Library::open_descriptor(Descriptor descriptor,
                                                                 std::uint64_t bytes,
                                                                 const std::string& name) {
  const Hdf5Lock lock;
  refuse_external_links();
  const hid_t file = open_hdf5_descriptor(std::move(descriptor), bytes);
  if (file < 0) return unreadable_hdf5(name);
  return std::unique_ptr<Hdf5Access>(new Hdf5Library(file, name, 0));
}

Result<bool> Hdf5Library::has(const std::string& path) {
  const Hdf5Lock lock;
  return exists(file_, path);
}

Result<bool> Hdf5Library::is_dataset(const std::string& path) {
  const Hdf5Lock lock;
  const Hdf5Handle object(H5Oopen(file_, path.c_str(), H5P_DEFAULT), H5Oclose);
  return object && H5Iget_type(object.get()) == H5I_DATASET;
}

Result<std::vector<std::string>> Hdf5Library::children(const std::string& group) {
  const Hdf5Lock lock;
  const Hdf5Handle handle(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose);
  if (!handle && !exists(file_, group)) return fault(group, "does not exist");
  std::vector<std::string> names;
  if (!handle ||
      H5Literate(handle.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_name, &names) < 0) {
    return fault(group, "is not a readable group");
  }
  return names;
}

Result<std::vector<std::int64_t>> Hdf5Library::dims(const std::string& dataset) {
  const Hdf5Lock lock;
  const Hdf5Handle data(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  if (!data) return fault(dataset, exists(file_, dataset) ? "is not a dataset" : "does not exist");
  const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  const int rank = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (rank < 0 || rank > kBlobAxesMax) return fault(dataset, "has no simple shape");
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  if (rank > 0 && H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr) < 0) {
    return fault(dataset, "has no readable shape");
  }
  std::vector<std::int64_t> result;
  std::int64_t count = 1;
  for (const hsize_t extent : extents) {
    result.push_back(static_cast<std::int64_t>(extent));
    if (__builtin_mul_overflow(count, result.back(), &count)) {
      return fault(dataset, "has a shape whose product overflows");
    }
  }
  return result;
}

Result<void> Hdf5Library::check_size(const std::string& dataset) {
  const Hdf5Lock lock;
  SPEEDO_ASSIGN(const std::vector<std::int64_t> extents, dims(dataset));
  const Hdf5Handle data(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
  const Hdf5Handle creation(H5Dget_create_plist(data.get()), H5Pclose);
  hsize_t file_bytes = 0;
  if (!type || !creation || H5Fget_filesize(file_, &file_bytes) < 0) {
    return fault(dataset, "is not a readable dataset");
  }
  if (is_elsewhere(creation.get())) {
    return fault(dataset,
                 "keeps its values in other files (virtual layout or external storage), which are "
                 "not read: copy them into this one");
  }
  const std::string subject =
      fmt::format("HDF5 file '{}' ({} bytes): '{}'", file_name_, file_bytes, dataset);
  const std::uint64_t capacity = capacity_of(data.get(), creation.get(), file_bytes);
  const std::uint64_t element_bytes = H5Tget_size(type.get());
  SPEEDO_TRY(check_claim(subject, {array_bytes(extents, element_bytes), capacity}));
  return check_claim(subject, {chunk_bytes_of(creation.get(), element_bytes), capacity});
}

Result<void> Hdf5Library::read_rows(const std::string& dataset, std::int64_t first,
                                    std::int64_t count, std::span<float> target) {
  const Hdf5Lock lock;
  SPEEDO_ASSIGN(const std::vector<std::int64_t> extents, dims(dataset));
  const Hdf5Handle data(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_FLOAT && kind != H5T_INTEGER) {
    return fault(dataset, "holds neither floats nor integers");
  }
  std::vector<hsize_t> start(extents.size(), 0), size(extents.begin(), extents.end());
  if (!extents.empty()) {
    SPEEDO_ASSERT(first >= 0 && count >= 0 && first + count <= extents[0]);
    start[0] = static_cast<hsize_t>(first);
    size[0] = static_cast<hsize_t>(count);
  }
  hsize_t values = 1;
  for (const hsize_t extent : size) values *= extent;
  SPEEDO_ASSERT(values == target.size());
  if (values == 0) return {};
  const Hdf5Handle source(H5Dget_space(data.get()), H5Sclose);
  const Hdf5Handle memory(H5Screate_simple(1, &values, nullptr), H5Sclose);
  if (!extents.empty() && H5Sselect_hyperslab(source.get(), H5S_SELECT_SET, start.data(), nullptr,
                                              size.data(), nullptr) < 0) {
    return fault(dataset, fmt::format("rows {} to {} cannot be selected", first, first + count));
  }
  if (H5Dread(data.get(), H5T_NATIVE_FLOAT, memory.get(), source.get(), H5P_DEFAULT,
              target.data()) < 0) {
    return fault(dataset, fmt::format("rows {} to {} cannot be read: the file is damaged", first,
                                      first + count));
  }
  if (is_cut()) return fault(dataset, "is of a file that was cut while it was read");
  return {};
}

Result<std::int64_t> Hdf5Library::read_integer(const std::string& dataset) {
  const Hdf5Lock lock;
  SPEEDO_ASSIGN(const std::vector<std::int64_t> extents, dims(dataset));
  for (const std::int64_t extent : extents) {
    if (extent != 1) return fault(dataset, "is not a single number");
  }
  SPEEDO_TRY(check_size(dataset));
  const Hdf5Handle data(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
  std::int64_t value = 0;
  if (H5Tget_class(type.get()) != H5T_INTEGER ||
      H5Dread(data.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0) {
    return fault(dataset, "is not a readable integer");
  }
  return value;
}

Result<std::string> Hdf5Library::read_string(const std::string& dataset) {
  const Hdf5Lock lock;
  const Hdf5Handle data(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  if (!data) return fault(dataset, exists(file_, dataset) ? "is not a dataset" : "does not exist");
  SPEEDO_TRY(check_size(dataset));
  const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
  const bool is_text = H5Tget_class(type.get()) == H5T_STRING;
  if (!is_text || H5Sget_simple_extent_npoints(space.get()) != 1) {
    return fault(dataset, "is not a single string");
  }
  if (H5Tis_variable_str(type.get()) > 0) {
    auto text = read_variable_text(file_, data.get());
    if (!text) return fault(dataset, text.error().message);
    return text;
  }
  const std::size_t bytes = H5Tget_size(type.get());
  if (bytes > kHdf5TextBytesMax) {
    return fault(dataset, fmt::format("is a string of {} bytes, more than {}", bytes,
                                      kHdf5TextBytesMax));
  }
  std::string text(bytes, '\0');
  if (H5Dread(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) {
    return fault(dataset, "is not a readable string");
  }
  text.resize(std::strlen(text.c_str()));
  return text;
}

}  // namespace speedo
