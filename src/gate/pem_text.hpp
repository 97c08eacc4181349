#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// A block of a PEM text: what lies in it, and where it lies.
struct PemBlock {
  std::string kind;   // "CERTIFICATE"
  std::string bytes;  // DER
  std::size_t begin = 0, end = 0;  // of the text: from its BEGIN to behind its END
};

// All blocks, in their order. Comments may lie between them, but nothing of a damaged block, which
// without its BEGIN OpenSSL takes for a comment. Error: kConfig, with the line.
Result<std::vector<PemBlock>> pem_blocks(std::string_view text);

// The text of a file that this process was given, wherever it lies: what confines the files that a
// net names (base/input_roots.hpp) is not for it. Errors: kNotFound, kRefused, kConfig; each says
// what is wrong with `path`.
Result<std::string> read_pem_file(const std::filesystem::path& path);

}  // namespace speedo
