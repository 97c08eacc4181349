#include <speedo/train/messages.hpp>

namespace speedo {

std::string clip_text(std::string_view text) {
  constexpr std::string_view kMark = "...";
  std::string clipped(text.substr(0, kTextMax));
  if (text.size() > kTextMax) {
    std::size_t end = kTextMax - kMark.size();
    // Bytes 10xxxxxx continue a character: the cut goes before its first byte.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    clipped.resize(end);
    clipped += kMark;
  }
  for (char& c : clipped) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20U || byte == 0x7FU) c = ' ';
  }
  return clipped;
}

ErrorCode error_code_of(std::uint32_t code) {
  const bool known = code <= static_cast<std::uint32_t>(ErrorCode::kSuperseded);
  return known ? static_cast<ErrorCode>(code) : ErrorCode::kInternal;
}

}  // namespace speedo
