#include <unistd.h>

#include <array>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>

#include <speedo/base/secret.hpp>

#include "support/catch.hpp"

namespace speedo {
namespace {

template <class T>
concept Printable = requires(std::ostream& stream, const T& value) {
  stream << value;
};
static_assert(Printable<std::string> && !Printable<Secret>);

// The flags of the mapping that holds an address, as /proc/self/smaps has them.
std::string flags_at(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t first = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> first >> dash >> end && dash == '-') {
      inside = wanted >= first && wanted < end;
    }
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

// The kernel's view: a system call is given the address.
bool is_mapped(const void* address) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const bool mapped = ::write(ends[1], address, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return mapped;
}

}  // namespace

TEST_CASE("A secret holds its text; copies share it") {
  CHECK(Secret().empty());
  CHECK(Secret("").empty());
  const Secret secret("pass word\n");
  const Secret copy = secret;
  CHECK(copy.reveal() == "pass word\n");
  CHECK(copy.reveal().data() == secret.reveal().data());
  const std::string longest(Secret::kBytesMax, 'x');
  CHECK(Secret(longest).reveal() == longest);
}

TEST_CASE("A secret's pages are left out of core dumps and of forked processes, and go with it") {
  const std::string text = "not a secret";
  CHECK(flags_at(text.data()).find(" dd ") == std::string::npos);
  const void* where = nullptr;
  {
    const Secret secret(text);
    where = secret.reveal().data();
    const std::string flags = flags_at(where);
    INFO(flags);
    CHECK(flags.find(" dd ") != std::string::npos);
    CHECK(flags.find(" dc ") != std::string::npos);
    CHECK(is_mapped(where));
  }
  CHECK_FALSE(is_mapped(where));
}

TEST_CASE("A secret that cannot be filled is an error") {
  const auto failed = Secret::filled_by([](std::span<char>) -> Result<std::size_t> {
    return Error{ErrorCode::kData, "no"};
  });
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message == "no");
  const auto filled = Secret::filled_by([](std::span<char> memory) -> Result<std::size_t> {
    REQUIRE(memory.size() == Secret::kBytesMax);
    memory[0] = 'x';
    return std::size_t{1};
  });
  REQUIRE(filled);
  CHECK(filled->reveal() == "x");
}

}  // namespace speedo
