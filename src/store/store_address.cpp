#include <speedo/store/store_address.hpp>

namespace speedo {

AddressParts split_address(std::string_view address) {
  constexpr std::string_view kSeparator = "://";
  AddressParts parts;
  if (const std::size_t at = address.find(kSeparator); at != std::string_view::npos) {
    parts.scheme = address.substr(0, at + kSeparator.size());
  }
  parts.place = address.substr(parts.scheme.size());
  if (parts.place.starts_with('/')) return parts;  // A path may hold any character.
  // Passwords hold '@' as well, hosts do not.
  if (const std::size_t at = parts.place.rfind('@'); at != std::string_view::npos) {
    parts.user_info = parts.place.substr(0, at);
    parts.place.remove_prefix(at + 1);
  }
  return parts;
}

std::string redacted(std::string_view address) {
  constexpr std::string_view kDatabase = "?db=";
  AddressParts parts = split_address(address);
  if (const std::size_t at = parts.place.find('?'); at != std::string_view::npos) {
    const std::string_view options = parts.place.substr(at);
    const bool database =
        options.starts_with(kDatabase) &&
        options.find_first_not_of("0123456789", kDatabase.size()) == std::string_view::npos;
    if (!database) parts.place = parts.place.substr(0, at);
  }
  return std::string(parts.scheme) + std::string(parts.place);
}

// A user info may hold a comma: then it is one address.
StoreAddress::StoreAddress(std::string_view address) {
  if (address.find('@') != std::string_view::npos) {
    text_ = redacted(address);
    return;
  }
  while (true) {
    const std::size_t comma = address.find(',');
    text_ += redacted(address.substr(0, comma));
    if (comma == std::string_view::npos) return;
    text_ += ',';
    address.remove_prefix(comma + 1);
  }
}

}  // namespace speedo
