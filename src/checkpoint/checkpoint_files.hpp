#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// The file system as checkpoints use it. What is written replaces its file in one step: whoever
// reads, also after a crash, finds the old one or the new one.
// Thread safety: all methods from any thread.
class CheckpointFiles {
 public:
  virtual ~CheckpointFiles() = default;
  // What lies in the folder, sorted, each as `folder / name`. Errors: those of list_folder().
  virtual Result<std::vector<std::filesystem::path>> list(const std::filesystem::path& folder) = 0;
  // Errors: kNotFound, kRefused, kData.
  virtual Result<std::uint64_t> size(const std::filesystem::path& file) = 0;
  virtual Result<std::string> read(const std::filesystem::path& file, std::size_t bytes_max) = 0;
  // How long ago it was written, by this machine's clock. Errors: as of size().
  virtual Result<std::chrono::seconds> age(const std::filesystem::path& file) = 0;
  // Errors: kCannotWrite.
  virtual Result<void> write(const std::filesystem::path& file,
                             std::span<const std::byte> bytes) = 0;
  virtual Result<void> rename(const std::filesystem::path& from,
                              const std::filesystem::path& to) = 0;
  virtual Result<void> remove(const std::filesystem::path& file) = 0;
  // Whether files with this prefix can be, up to the name that the longest ending makes. Error:
  // kCannotWrite.
  virtual Result<void> check_writable(const std::string& prefix,
                                      const std::string& longest_ending) = 0;
  // Tells other processes, on other machines too, that this one is at work on the file, until the
  // result goes. Where that cannot be told it is null.
  virtual std::shared_ptr<const void> hold(const std::filesystem::path& file) = 0;
  // Whether one may be: also where that cannot be known.
  virtual bool may_be_held(const std::filesystem::path& file) = 0;
  // Removes what killed processes left beside files whose paths begin so.
  virtual void sweep(const std::string& beginning) = 0;

  // Caffe's two, see data/model_files.hpp.
  virtual Result<caffe::NetParameter> read_model(const std::filesystem::path& file) = 0;
  virtual Result<caffe::SolverState> read_state(const std::filesystem::path& file) = 0;
  virtual Result<void> write_model(const std::filesystem::path& file,
                                   const caffe::NetParameter& net,
                                   caffe::SolverParameter::SnapshotFormat format) = 0;
  virtual Result<void> write_state(const std::filesystem::path& file,
                                   const caffe::SolverState& state,
                                   caffe::SolverParameter::SnapshotFormat format) = 0;
};

// Those of this machine.
CheckpointFiles& disk_files();

}  // namespace speedo
