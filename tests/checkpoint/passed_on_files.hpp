#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_files.hpp"

namespace speedo::test {

// This machine's files; tests override what befalls them.
class PassedOnFiles : public CheckpointFiles {
 public:
  using Path = std::filesystem::path;
  using Format = caffe::SolverParameter::SnapshotFormat;

  Result<std::vector<Path>> list(const Path& folder) override { return disk_.list(folder); }
  Result<std::uint64_t> size(const Path& file) override { return disk_.size(file); }
  Result<std::chrono::seconds> age(const Path& file) override { return disk_.age(file); }
  Result<std::string> read(const Path& file, std::size_t bytes_max) override {
    return disk_.read(file, bytes_max);
  }
  Result<void> write(const Path& file, std::span<const std::byte> bytes) override {
    return disk_.write(file, bytes);
  }
  Result<void> rename(const Path& from, const Path& to) override { return disk_.rename(from, to); }
  Result<void> remove(const Path& file) override { return disk_.remove(file); }
  Result<void> check_writable(const std::string& prefix,
                              const std::string& longest_ending) override {
    return disk_.check_writable(prefix, longest_ending);
  }
  std::shared_ptr<const void> hold(const Path& file) override { return disk_.hold(file); }
  bool may_be_held(const Path& file) override { return disk_.may_be_held(file); }
  void sweep(const std::string& beginning) override { disk_.sweep(beginning); }
  Result<caffe::NetParameter> read_model(const Path& file) override {
    return disk_.read_model(file);
  }
  Result<caffe::SolverState> read_state(const Path& file) override {
    return disk_.read_state(file);
  }
  Result<void> write_model(const Path& file, const caffe::NetParameter& net,
                           Format format) override {
    return disk_.write_model(file, net, format);
  }
  Result<void> write_state(const Path& file, const caffe::SolverState& state,
                           Format format) override {
    return disk_.write_state(file, state, format);
  }

 private:
  CheckpointFiles& disk_ = disk_files();
};

}  // namespace speedo::test
