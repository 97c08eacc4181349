#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// A text that nobody else may see: a password. It lies in pages of its own, which core dumps leave
// out and forked processes do not get, and which are wiped when the last copy of the object ends.
// Copies of the object share those pages. It cannot be printed; whoever needs the text reads it
// where it lies.
// Thread safety: a constant after it was made.
class Secret {
 public:
  // Room for the tokens of cloud providers, which are the longest passwords, some 2.5 KB.
  static constexpr std::size_t kBytesMax = 4096;

  Secret() = default;  // empty
  // At most kBytesMax bytes, asserted. What the caller copied it from is the caller's to wipe.
  explicit Secret(std::string_view text);

  // Lets `fill` write into the secret's own memory, kBytesMax bytes, and say how many of them it
  // used: so there is no other copy. Errors: those of `fill`, kFull.
  using Fill = std::function<Result<std::size_t>(std::span<char> memory)>;
  static Result<Secret> filled_by(const Fill& fill);

  bool empty() const { return reveal().empty(); }
  std::string_view reveal() const;  // as long as a copy of this object lives

  friend std::ostream& operator<<(std::ostream& stream, const Secret& secret) = delete;

 private:
  class Pages;
  std::shared_ptr<const Pages> pages_;
};

}  // namespace speedo
