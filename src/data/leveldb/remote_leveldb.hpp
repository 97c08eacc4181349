#pragma once

#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// A local folder with the database at a URI: the files that its CURRENT and MANIFEST name, which
// needs no listing of the remote folder. Requires: no process writes the database meanwhile.
// Errors: those of find_file(), and of reading the MANIFEST.
Result<std::filesystem::path> fetch_leveldb(const std::string& uri);

}  // namespace speedo
