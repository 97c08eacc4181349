#include "data/hdf5/hdf5_output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "data/hdf5/hdf5_driver.hpp"
#include "data/hdf5/hdf5_handle.hpp"

namespace speedo {

namespace {

struct OutputFile : Hdf5DriverFile {
  std::shared_ptr<Hdf5Output> output;
};

// What create_hdf5_output() has for the driver; guarded by Hdf5Lock.
OutputFile* to_create = nullptr;

OutputFile& output_of(H5FD_t* file) { return hdf5_driver_file<OutputFile>(file); }

// The library first looks whether there is such a file already, without asking to create it.
H5FD_t* open_output(const char*, unsigned flags, hid_t, haddr_t) {
  if ((flags & H5F_ACC_CREAT) == 0) return nullptr;
  OutputFile* const file = std::exchange(to_create, nullptr);
  return file == nullptr ? nullptr : &file->base;
}

herr_t close_output(H5FD_t* file) {
  output_of(file).output->is_closed = true;
  delete &output_of(file);
  return 0;
}

// Those of the library's own driver that concern how a file is laid out.
herr_t query_output(const H5FD_t*, unsigned long* features) {
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
              H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

herr_t read_output(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t from, std::size_t count, void* target) {
  Hdf5Output& output = *output_of(file).output;
  if (read_hdf5_bytes(output.descriptor.get(), from, count, target) >= 0) return 0;
  if (output.failure == 0) output.failure = errno;
  std::memset(target, 0, count);
  return 0;
}

herr_t write_output(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t to, std::size_t count,
                    const void* source) {
  Hdf5Output& output = *output_of(file).output;
  output_of(file).bytes = std::max<haddr_t>(output_of(file).bytes, to + count);
  const auto* next = static_cast<const char*>(source);
  while (count > 0 && output.failure == 0) {
    const ssize_t put = ::pwrite(output.descriptor.get(), next, count, static_cast<off_t>(to));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      output.failure = put < 0 ? errno : ENOSPC;
      break;
    }
    next += put;
    to += static_cast<haddr_t>(put);
    count -= static_cast<std::size_t>(put);
  }
  return 0;
}

// A file must be as long as its header says, where its last bytes were never written, too.
herr_t truncate_output(H5FD_t* file, hid_t, hbool_t) {
  OutputFile& opened = output_of(file);
  Hdf5Output& output = *opened.output;
  if (opened.bytes == opened.end_of_addresses) return 0;
  opened.bytes = opened.end_of_addresses;
  const auto bytes = static_cast<off_t>(opened.bytes);
  if (output.failure == 0 && ::ftruncate(output.descriptor.get(), bytes) != 0) {
    output.failure = errno;
  }
  return 0;
}

// A file of which something is still open is not closed, and that is an error.
hid_t register_output_driver() {
  static H5FD_class_t driver = hdf5_driver("speedo_output");
  driver.fc_degree = H5F_CLOSE_SEMI;
  driver.open = open_output;
  driver.close = close_output;
  driver.query = query_output;
  driver.read = read_output;
  driver.write = write_output;
  driver.truncate = truncate_output;
  return H5FDregister(&driver);
}

hid_t output_driver_id() {
  static const hid_t id = register_output_driver();
  return id;
}

}  // namespace

std::int64_t create_hdf5_output(std::shared_ptr<Hdf5Output> output) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (!access || H5Pset_driver(access.get(), output_driver_id(), nullptr) < 0) return -1;
  to_create = new OutputFile{{}, std::move(output)};
  // An absolute name: for others the library asks for the working directory.
  const hid_t file = H5Fcreate("/file", H5F_ACC_EXCL, H5P_DEFAULT, access.get());
  delete std::exchange(to_create, nullptr);
  return file;
}

}  // namespace speedo
