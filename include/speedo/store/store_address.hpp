#pragma once

#include <string>
#include <string_view>

namespace speedo {

// An address taken apart, [SCHEME://][USER_INFO@]PLACE. Views into it.
struct AddressParts {
  std::string_view scheme;     // with its "://"; empty if there is none
  std::string_view user_info;  // "USER", ":PASSWORD" or "USER:PASSWORD", percent-encoded
  std::string_view place;      // host, port, database; or the path of a socket, which begins with /
};
AddressParts split_address(std::string_view address);

// The address as it may be shown to anybody: without user info, and without options behind a '?'
// but the number of a database.
std::string redacted(std::string_view address);

// Where a store is, one address or several with commas between them, without what opens it: this is
// what workers are told and what is logged. Made of a text with a user or a password in it, it has
// lost them. Thread safety: none needed.
class StoreAddress {
 public:
  StoreAddress() = default;
  explicit StoreAddress(std::string_view address);

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace speedo
