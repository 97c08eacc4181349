#pragma once

#include <string>

#include <zlib.h>

#include "data_support.hpp"

namespace speedo {

// A chunk of a PNG, with its length and its checksum.
inline std::string png_chunk(const std::string& kind, const std::string& content) {
  const std::string body = kind + content;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big32_text(static_cast<std::uint32_t>(content.size())) + body +
         big32_text(static_cast<std::uint32_t>(sum));
}

}  // namespace speedo
