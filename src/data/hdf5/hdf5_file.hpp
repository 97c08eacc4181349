#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/base/temporary.hpp>

namespace speedo {

// What a file begins with that has nothing before what HDF5 writes.
inline constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

class Hdf5Access;
struct Hdf5Output;

// The only door to the HDF5 library. Paths inside a file are separated by '/'.
//
// Thread safety: the library is one big shared state, so every call here takes one lock; one object
// may be used by one thread at a time. While there are ParserProcesses, files are read in one of
// them each.

// An open file for reading. Errors: kNotFound if it does not exist, kRefused if it may not be read,
// kData naming file and dataset for everything else.
class Hdf5Reader {
 public:
  static Result<Hdf5Reader> open(const std::filesystem::path& path);
  Hdf5Reader(Hdf5Reader&& other) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&& other) noexcept;
  ~Hdf5Reader();

  const std::string& file_name() const { return file_name_; }
  // A group or dataset of this name exists; see status().
  bool has(const std::string& path) const;
  bool is_dataset(const std::string& path) const;
  // Whether all that returned a bool so far could be found out: false is also said of a file that
  // ends who reads it. Error: kData.
  Result<void> status() const;
  Result<std::vector<std::string>> children(const std::string& group) const;  // sorted by name

  Result<std::vector<std::int64_t>> dims(const std::string& dataset) const;
  // Whether the file can hold what a dataset announces, and its values are in it; to be asked
  // before memory is taken for as much. Error: kData (claimed_size.hpp).
  Result<void> check_size(const std::string& dataset) const;
  // Rows first .. first+count-1 along the first axis, as float; a scalar dataset is one row.
  // Requires: `target` holds exactly that many values.
  Result<void> read_rows(const std::string& dataset, std::int64_t first, std::int64_t count,
                         std::span<float> target) const;
  Result<std::vector<float>> read_floats(const std::string& dataset) const;  // all of it
  Result<std::int64_t> read_integer(const std::string& dataset) const;       // one value
  // One of fixed or of variable length, up to its first NUL.
  Result<std::string> read_string(const std::string& dataset) const;

 private:
  Hdf5Reader(std::unique_ptr<Hdf5Access> access, std::string file_name);
  bool answer(Result<bool> asked) const;

  std::unique_ptr<Hdf5Access> access_;
  std::string file_name_;
  mutable std::optional<Error> failure_;
};

// A file being written beside its final name: commit() puts it in place in one step, so that nobody
// ever sees half of it. Without commit() nothing is left behind. Errors: kCannotWrite.
class Hdf5Writer {
 public:
  static Result<Hdf5Writer> create(const std::filesystem::path& path);
  Hdf5Writer(Hdf5Writer&& other) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) = delete;
  ~Hdf5Writer();

  Result<void> add_group(const std::string& path);  // and its parents; not an error: it exists
  Result<void> add_floats(const std::string& path, std::span<const std::int64_t> dims,
                          std::span<const float> values);
  Result<void> add_doubles(const std::string& path, std::span<const std::int64_t> dims,
                           std::span<const double> values);
  Result<void> add_integers(const std::string& path, std::span<const int> values);
  Result<void> add_string(const std::string& path, const std::string& value);

  // A dataset that grows by rows: chunked, float.
  Result<void> add_rows(const std::string& path, std::span<const std::int64_t> row_dims,
                        std::span<const float> values);

  Result<void> commit();

 private:
  Hdf5Writer(std::int64_t file, std::shared_ptr<Hdf5Output> output, std::filesystem::path path,
             Temporary temporary);
  Error fault(const std::string& object) const;
  Result<void> outcome(bool is_done, const std::string& object) const;
  Result<void> add_dataset(const std::string& path, std::span<const std::int64_t> dims,
                           std::int64_t file_type, std::int64_t memory_type, const void* values);
  bool close();

  std::int64_t file_ = -1;
  std::shared_ptr<Hdf5Output> output_;
  std::filesystem::path path_;
  Temporary temporary_;
};

}  // namespace speedo
