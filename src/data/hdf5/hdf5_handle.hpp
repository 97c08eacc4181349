#pragma once

#include <mutex>

#include <hdf5.h>

namespace speedo {

// Held during every use of the HDF5 library, which is not safe for several threads. Also keeps the
// library from printing its error stack: our errors name file and dataset instead. And from
// tidying up when the process ends: there it faults over what it once could not close.
class Hdf5Lock {
 public:
  Hdf5Lock() : lock_(mutex()) {
    leave_exit_alone();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }

 private:
  // Before anything else of the library, which asks only then.
  static void leave_exit_alone() { [[maybe_unused]] static const herr_t done = H5dont_atexit(); }
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex instance;
    return instance;
  }
  std::lock_guard<std::recursive_mutex> lock_;
};

// Closes an HDF5 identifier with the function that fits it. Requires: Hdf5Lock is held.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

}  // namespace speedo
