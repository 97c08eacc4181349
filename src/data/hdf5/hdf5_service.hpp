#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <speedo/base/result.hpp>

#include "data/hdf5/hdf5_access.hpp"
#include "sandbox/helper_server.hpp"

namespace speedo {

// The helper's side of hdf5_task.hpp. Thread safety: one thread.
class Hdf5Service {
 public:
  // What the library does with files of its own, done once, while the process may.
  static void prepare();
  Result<HelperAnswer> serve(HelperTask& task, std::span<std::byte> output);

 private:
  Result<HelperAnswer> open(HelperTask& task);

  std::unique_ptr<Hdf5Access> file_;  // null: none was given, or it is no HDF5 file
};

}  // namespace speedo
