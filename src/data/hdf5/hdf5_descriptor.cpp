#include "data/hdf5/hdf5_descriptor.hpp"

#include <utility>

#include "data/hdf5/hdf5_driver.hpp"
#include "data/hdf5/hdf5_handle.hpp"

namespace speedo {

namespace {

struct DescriptorFile : Hdf5DriverFile {
  Descriptor descriptor{-1};
  int handle = -1;  // its number, for who reads the file without the library
};

// What open_hdf5_descriptor() has for the driver; guarded by Hdf5Lock.
DescriptorFile* to_open = nullptr;

DescriptorFile& file_of(H5FD_t* file) { return hdf5_driver_file<DescriptorFile>(file); }

// Null for a second file, which a file may name.
H5FD_t* open_file(const char*, unsigned, hid_t, haddr_t) {
  DescriptorFile* const file = std::exchange(to_open, nullptr);
  return file == nullptr ? nullptr : &file->base;
}

herr_t close_file(H5FD_t* file) {
  delete &file_of(file);
  return 0;
}

herr_t query_features(const H5FD_t*, unsigned long* features) {
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

// A file that has been cut since it was opened cannot be read behind that.
herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t from, std::size_t count, void* target) {
  const DescriptorFile& opened = file_of(file);
  const std::int64_t got = read_hdf5_bytes(opened.descriptor.get(), from, count, target);
  if (got < 0) return -1;
  const auto came = static_cast<haddr_t>(got);
  return came < count && from + came < opened.bytes ? -1 : 0;
}

herr_t get_handle(H5FD_t* file, hid_t, void** handle) {
  *handle = &file_of(file).handle;
  return 0;
}

herr_t write_nothing(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }

hid_t register_driver() {
  static H5FD_class_t driver = hdf5_driver("speedo_descriptor");
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query_features;
  driver.get_handle = get_handle;
  driver.read = read_file;
  driver.write = write_nothing;
  return H5FDregister(&driver);
}

hid_t driver_id() {
  static const hid_t id = register_driver();
  return id;
}

}  // namespace

void prepare_hdf5_descriptors() { static_cast<void>(driver_id()); }

std::int64_t open_hdf5_descriptor(Descriptor descriptor, std::uint64_t bytes) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (!access || H5Pset_driver(access.get(), driver_id(), nullptr) < 0) return -1;
  const int handle = descriptor.get();
  to_open = new DescriptorFile{{{}, bytes}, std::move(descriptor), handle};
  // An absolute name: for others the library asks for the working directory.
  const hid_t file = H5Fopen("/file", H5F_ACC_RDONLY, access.get());
  delete std::exchange(to_open, nullptr);
  return file;
}

}  // namespace speedo
