#pragma once

#include <string>
#include <string_view>

namespace speedo {

// `text` as it is written in a URI: %XX for each byte of which is_plain(unsigned char) is false.
template <class IsPlain>
std::string percent_encode(std::string_view text, IsPlain is_plain) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (is_plain(byte)) {
      encoded += letter;
    } else {
      encoded += {'%', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
    }
  }
  return encoded;
}

// Whether it is a letter or digit of ASCII, or one of `others`, which are of ASCII too.
inline bool is_ascii_word(unsigned char byte, std::string_view others) {
  const unsigned char upper = byte & 0xDFU;
  return (byte >= '0' && byte <= '9') || (upper >= 'A' && upper <= 'Z') ||
         others.find(static_cast<char>(byte)) != std::string_view::npos;
}

}  // namespace speedo
