#include "data/hdf5/hdf5_descriptor.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "data/hdf5/hdf5_handle.hpp"

namespace speedo {

namespace {

// The library's view of a file comes first, and it hands out pointers to that.
struct DescriptorFile {
  H5FD_t base{};
  Descriptor descriptor{-1};
  int handle = -1;  // its number, for who reads the file without the library
  haddr_t bytes = 0, end_of_addresses = 0;
};

// What open_hdf5_descriptor() has for the driver; guarded by Hdf5Lock.
DescriptorFile* to_open = nullptr;

DescriptorFile& file_of(H5FD_t* file) { return *reinterpret_cast<DescriptorFile*>(file); }
const DescriptorFile& file_of(const H5FD_t* file) {
  return *reinterpret_cast<const DescriptorFile*>(file);
}

// Null for a second file, which a file may name.
H5FD_t* open_file(const char*, unsigned, hid_t, haddr_t) {
  DescriptorFile* const file = std::exchange(to_open, nullptr);
  return file == nullptr ? nullptr : &file->base;
}

herr_t close_file(H5FD_t* file) {
  delete &file_of(file);
  return 0;
}

int compare_files(const H5FD_t* a, const H5FD_t* b) { return a == b ? 0 : a < b ? -1 : 1; }

herr_t query_features(const H5FD_t*, unsigned long* features) {
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return file_of(file).end_of_addresses; }

herr_t set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  file_of(file).end_of_addresses = end;
  return 0;
}

haddr_t file_bytes(const H5FD_t* file, H5FD_mem_t) { return file_of(file).bytes; }

// What lies behind the file's end is zeros, as for the library's own drivers; but where it has been
// cut since it was opened.
herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t from, std::size_t count, void* target) {
  auto* next = static_cast<char*>(target);
  while (count > 0) {
    const ssize_t got =
        ::pread(file_of(file).descriptor.get(), next, count, static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0 && from < file_of(file).bytes) return -1;
    if (got == 0) {
      std::memset(next, 0, count);
      return 0;
    }
    next += got;
    from += static_cast<haddr_t>(got);
    count -= static_cast<std::size_t>(got);
  }
  return 0;
}

herr_t get_handle(H5FD_t* file, hid_t, void** handle) {
  *handle = &file_of(file).handle;
  return 0;
}

herr_t write_nothing(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }

hid_t register_driver() {
  static H5FD_class_t driver{};
  driver.name = "speedo_descriptor";
  driver.maxaddr = INT64_MAX;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open_file;
  driver.close = close_file;
  driver.cmp = compare_files;
  driver.query = query_features;
  driver.get_eoa = get_end;
  driver.set_eoa = set_end;
  driver.get_eof = file_bytes;
  driver.get_handle = get_handle;
  driver.read = read_file;
  driver.write = write_nothing;
  const H5FD_mem_t map[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::memcpy(driver.fl_map, map, sizeof(map));
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
  to_open = new DescriptorFile{{}, std::move(descriptor), handle, bytes, 0};
  // An absolute name: for others the library asks for the working directory.
  const hid_t file = H5Fopen("/file", H5F_ACC_RDONLY, access.get());
  delete std::exchange(to_open, nullptr);
  return file;
}

}  // namespace speedo
