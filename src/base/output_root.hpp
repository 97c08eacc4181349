#pragma once

#include <filesystem>
#include <memory>

#include <speedo/base/result.hpp>

namespace speedo {

struct Root;

// Below which folder a process writes what solver and net name: snapshots, and files of layers.
// While it lives, check_output() refuses others. Thread safety: made and destroyed while no other
// thread writes.
class OutputRoot {
 public:
  // Errors: as open_root(). Requires: there is none.
  static Result<std::unique_ptr<OutputRoot>> confine(const std::filesystem::path& folder);
  ~OutputRoot();
  OutputRoot(const OutputRoot&) = delete;
  OutputRoot& operator=(const OutputRoot&) = delete;

 private:
  explicit OutputRoot(std::unique_ptr<Root> root);
  const std::unique_ptr<Root> root_;
};

// Of a file that is to be written in its folder. Error: kCannotWrite if that lies outside of the
// root, naming both. A folder that is missing is the writer's to tell.
Result<void> check_output(const std::filesystem::path& file);

}  // namespace speedo
