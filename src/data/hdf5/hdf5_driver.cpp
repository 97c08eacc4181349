#include "data/hdf5/hdf5_driver.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace speedo {

namespace {

const Hdf5DriverFile& driver_file(const H5FD_t* view) {
  return *reinterpret_cast<const Hdf5DriverFile*>(view);
}

int compare_views(const H5FD_t* a, const H5FD_t* b) { return a == b ? 0 : a < b ? -1 : 1; }

haddr_t end_of_addresses(const H5FD_t* view, H5FD_mem_t) {
  return driver_file(view).end_of_addresses;
}

herr_t set_end_of_addresses(H5FD_t* view, H5FD_mem_t, haddr_t end) {
  hdf5_driver_file<Hdf5DriverFile>(view).end_of_addresses = end;
  return 0;
}

haddr_t end_of_file(const H5FD_t* view, H5FD_mem_t) { return driver_file(view).bytes; }

}  // namespace

H5FD_class_t hdf5_driver(const char* name) {
  H5FD_class_t driver{};
  driver.name = name;
  driver.maxaddr = INT64_MAX;
  driver.cmp = compare_views;
  driver.get_eoa = end_of_addresses;
  driver.set_eoa = set_end_of_addresses;
  driver.get_eof = end_of_file;
  const H5FD_mem_t map[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::memcpy(driver.fl_map, map, sizeof(map));
  return driver;
}

std::int64_t read_hdf5_bytes(int descriptor, haddr_t from, std::size_t count, void* target) {
  auto* const first = static_cast<char*>(target);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(descriptor, first + done, count - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  std::memset(first + done, 0, count - done);
  return static_cast<std::int64_t>(done);
}

}  // namespace speedo
