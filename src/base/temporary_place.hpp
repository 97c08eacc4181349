#pragma once

#include <filesystem>

#include <speedo/base/result.hpp>

namespace speedo {

// Where temporary files lie if the variable for it is of no use.
inline constexpr const char* kTemporaryPlace = "/tmp";

// The folder that TMPDIR names, with its whole path; without TMPDIR that of TMP, TEMP or TEMPDIR,
// or kTemporaryPlace. Error: kCannotWrite if it is no folder.
Result<std::filesystem::path> temporary_place();

}  // namespace speedo
