#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

struct LeveldbTableFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;  // as the MANIFEST has it
};

// What the edits of a MANIFEST come to.
struct LeveldbVersion {
  std::map<std::uint64_t, std::uint64_t> tables;  // number, bytes
  std::uint64_t log = 0, previous_log = 0;        // those before `log` are old, but for the other
  std::string comparator;
};

// Errors: kData naming the file; kUnsupported for a database whose keys are ordered in another way.
Result<std::string> leveldb_manifest_name(const std::filesystem::path& current);
Result<LeveldbVersion> read_leveldb_manifest(const std::filesystem::path& path);

// The files of a database that hold records which are still valid.
struct LeveldbFolder {
  std::vector<LeveldbTableFile> tables;
  std::vector<std::filesystem::path> logs;  // by age
};

// Reads CURRENT and the MANIFEST that it names. Errors: kData naming the file; kUnsupported for a
// database whose keys are ordered in another way.
Result<LeveldbFolder> read_leveldb_folder(const std::filesystem::path& folder);

}  // namespace speedo
