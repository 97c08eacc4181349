#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// What Hdf5Reader (hdf5_file.hpp) asks of an open file, in this process or in a helper. Errors name
// the file. Thread safety: one thread at a time.
class Hdf5Access {
 public:
  virtual ~Hdf5Access() = default;
  virtual Result<bool> has(const std::string& path) = 0;
  virtual Result<bool> is_dataset(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> children(const std::string& group) = 0;
  virtual Result<std::vector<std::int64_t>> dims(const std::string& dataset) = 0;
  virtual Result<void> check_size(const std::string& dataset) = 0;
  virtual Result<void> read_rows(const std::string& dataset, std::int64_t first, std::int64_t count,
                                 std::span<float> target) = 0;
  virtual Result<std::int64_t> read_integer(const std::string& dataset) = 0;
  virtual Result<std::string> read_string(const std::string& dataset) = 0;
};

// "HDF5 file 'F': 'OBJECT' WHAT", kData.
Error hdf5_fault(const std::string& file, const std::string& object, const std::string& what);
// Of a file that the library does not open.
Error unreadable_hdf5(const std::string& file);

}  // namespace speedo
