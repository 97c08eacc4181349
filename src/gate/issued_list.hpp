#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// What an authority has issued: the file `issued` of its folder, a line each: NAME SERIAL EXPIRY.
// So a certificate can be revoked whose own file is gone, or holds a later one of the same name.

struct IssuedCertificate {
  std::string name;
  std::string serial;  // hexadecimal
  std::string expiry;  // in UTC, as 2026-11-30T23:59:59Z: earlier ones are less
};

// Of a folder without that file: none. Errors: kConfig with the line that is none; kRefused, kData.
Result<std::vector<IssuedCertificate>> read_issued(const std::filesystem::path& folder);

// Whoever else writes the list must be kept away meanwhile. Errors: of read_issued(); kCannotWrite.
Result<void> add_issued(const std::filesystem::path& folder, const IssuedCertificate& issued);

}  // namespace speedo
