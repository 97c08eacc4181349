// What of an address may be shown.

#include <vector>

#include <speedo/store/store_address.hpp>

#include "store/store_under_test.hpp"

namespace speedo::test {

TEST_CASE("addresses come apart") {
  const auto parts = [](std::string_view address) {
    const AddressParts found = split_address(address);
    return std::vector<std::string>{std::string(found.scheme), std::string(found.user_info),
                                    std::string(found.place)};
  };
  using Parts = std::vector<std::string>;
  CHECK(parts("host:1") == Parts{"", "", "host:1"});
  CHECK(parts("me:pw@host:1") == Parts{"", "me:pw", "host:1"});
  CHECK(parts("redis://host/5") == Parts{"redis://", "", "host/5"});
  CHECK(parts("redis://:p@ss/@host/5") == Parts{"redis://", ":p@ss/", "host/5"});
  CHECK(parts("rediss://a@") == Parts{"rediss://", "a", ""});
  CHECK(parts("unix:///run/a@b.sock") == Parts{"unix://", "", "/run/a@b.sock"});
  CHECK(parts("unix://me@/run/a.sock?db=2") == Parts{"unix://", "me", "/run/a.sock?db=2"});
}

TEST_CASE("an address is shown and sent without what opens it") {
  CHECK(redacted("redis://me:secret@host:1/5") == "redis://host:1/5");
  CHECK(redacted("redis://@host") == "redis://host");
  CHECK(redacted("me:secret@host:1") == "host:1");
  CHECK(redacted("redis://host?password=secret") == "redis://host");
  CHECK(redacted("unix://:secret@/run/a.sock?db=2") == "unix:///run/a.sock?db=2");
  CHECK(redacted("unix:///run/a.sock?db=2&password=secret") == "unix:///run/a.sock");
  CHECK(StoreAddress("redis://:secret@host").text() == "redis://host");
  CHECK(StoreAddress().empty());
}

}  // namespace speedo::test
