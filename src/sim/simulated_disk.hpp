#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_files.hpp"
#include "sim/fault_ledger.hpp"
#include "sim/process_platform.hpp"

namespace speedo::sim {

// What outlives every process: files. Each is replaced in one step, as on a real disk, and what
// befalls them there befalls them here.
class SimulatedDisk {
 public:
  struct File {
    std::string bytes;
    bool is_whole = true;  // as it was written
    FaultMark fault;       // felt by whoever looks for a start and reads it
  };
  using Files = std::map<std::filesystem::path, File>;
  const Files& files() const { return files_; }
  void put(const std::filesystem::path& path, File file) { files_[path] = std::move(file); }
  void mark(const std::filesystem::path& path, const FaultMark& mark) {
    files_.at(path).fault = mark;
  }
  // The file loses its second half, or one of its bits flips. False: there is no such file.
  bool damage(const std::filesystem::path& path, bool truncates, const FaultMark& mark);

 private:
  friend class ProcessFiles;
  Files files_;
};

// A process' way to the disk.
class ProcessFiles : public CheckpointFiles {
 public:
  // `platform`: of the process; null for one that never dies.
  explicit ProcessFiles(SimulatedDisk& disk, ProcessPlatform* platform = nullptr)
      : disk_(disk), platform_(platform) {}

  Result<std::vector<std::filesystem::path>> list(const std::filesystem::path& folder) override;
  Result<std::uint64_t> size(const std::filesystem::path& file) override;
  // Nothing lies there for long.
  Result<std::chrono::seconds> age(const std::filesystem::path&) override {
    return std::chrono::seconds(0);
  }
  // Who stands still for a long time loses what it holds, as it may by a network's file system.
  std::shared_ptr<const void> hold(const std::filesystem::path&) override { return nullptr; }
  bool may_be_held(const std::filesystem::path&) override { return true; }
  Result<std::string> read(const std::filesystem::path& file, std::size_t bytes_max) override;
  Result<void> write(const std::filesystem::path& file, std::span<const std::byte> bytes) override;
  Result<void> rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Result<void> remove(const std::filesystem::path& file) override;
  Result<void> check_writable(const std::string&, const std::string&) override { return {}; }
  void sweep(const std::string&) override {}  // a write that was broken off leaves nothing
  Result<caffe::NetParameter> read_model(const std::filesystem::path& file) override;
  Result<caffe::SolverState> read_state(const std::filesystem::path& file) override;
  Result<void> write_model(const std::filesystem::path& file, const caffe::NetParameter& net,
                           caffe::SolverParameter::SnapshotFormat format) override;
  Result<void> write_state(const std::filesystem::path& file, const caffe::SolverState& state,
                           caffe::SolverParameter::SnapshotFormat format) override;

  // Whether what is read from now on is for the choice of a start.
  void look_for_start(bool looks) { looks_for_start_ = looks; }
  // At the change that comes so many after this, once it is done or before, `strike` is called: it
  // kills the process.
  struct Strike {
    std::uint64_t count = 0;
    bool with_effect = false;
    std::function<void()> strike;
  };
  void strike_at_change(Strike strike) { strike_ = std::move(strike); }
  void cancel_strike() { strike_ = {}; }

 private:
  void change(const std::function<void()>& action);
  SimulatedDisk& disk_;
  ProcessPlatform* const platform_;
  bool looks_for_start_ = false;
  Strike strike_;
};

}  // namespace speedo::sim
