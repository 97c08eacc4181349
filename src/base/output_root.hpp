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

// A folder that this program has made for itself alone: neither solver nor net has named it. While
// it lives, its thread may write files there, too.
class OwnOutputFolder {
 public:
  // Requires: this thread has none.
  explicit OwnOutputFolder(std::filesystem::path folder);
  ~OwnOutputFolder();
  OwnOutputFolder(const OwnOutputFolder&) = delete;
  OwnOutputFolder& operator=(const OwnOutputFolder&) = delete;

 private:
  const std::filesystem::path folder_;
};

// Of a file that is to be written where its name leads to, behind symbolic links, be there a file
// or not. Error: kCannotWrite if that lies outside of the root, naming both. A folder that is
// missing is the writer's to tell. Whoever writes what solver or net name asks before each file.
Result<void> check_output(const std::filesystem::path& file);

}  // namespace speedo
