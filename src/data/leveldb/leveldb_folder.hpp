#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

struct LeveldbTableFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;  // as the MANIFEST has it
};

// The files of a database that hold records which are still valid.
struct LeveldbFolder {
  std::vector<LeveldbTableFile> tables;
  std::vector<std::filesystem::path> logs;  // by age
};

// Reads CURRENT and the MANIFEST that it names. Errors: kData naming the file; kUnsupported for a
// database whose keys are ordered in another way.
Result<LeveldbFolder> read_leveldb_folder(const std::filesystem::path& folder);

}  // namespace speedo
