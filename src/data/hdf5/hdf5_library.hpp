#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "data/hdf5/hdf5_access.hpp"

namespace speedo {

// A file that the HDF5 library reads in this process. Each call takes its lock.
class Hdf5Library : public Hdf5Access {
 public:
  // Errors: kData; as open_input(), where inputs are confined.
  static Result<std::unique_ptr<Hdf5Access>> open(const std::filesystem::path& path);
  // A file of so many bytes that is open, without opening any; `name` is what errors call it. From
  // then on no link into another file is followed in this process. Error: kData.
  static Result<std::unique_ptr<Hdf5Access>> open_descriptor(Descriptor descriptor,
                                                             std::uint64_t bytes,
                                                             const std::string& name);
  Hdf5Library(const Hdf5Library&) = delete;
  Hdf5Library& operator=(const Hdf5Library&) = delete;
  ~Hdf5Library() override;

  Result<bool> has(const std::string& path) override;
  Result<bool> is_dataset(const std::string& path) override;
  Result<std::vector<std::string>> children(const std::string& group) override;
  Result<std::vector<std::int64_t>> dims(const std::string& dataset) override;
  Result<void> check_size(const std::string& dataset) override;
  Result<void> read_rows(const std::string& dataset, std::int64_t first, std::int64_t count,
                         std::span<float> target) override;
  Result<std::int64_t> read_integer(const std::string& dataset) override;
  Result<std::string> read_string(const std::string& dataset) override;

 private:
  Hdf5Library(std::int64_t file, std::string file_name, std::uint64_t bytes)
      : file_(file), file_name_(std::move(file_name)), bytes_(bytes) {}
  bool is_cut() const;
  Error fault(const std::string& object, const std::string& what) const;

  const std::int64_t file_;
  const std::string file_name_;
  const std::uint64_t bytes_;  // when it was opened; 0: its driver minds them
};

}  // namespace speedo
