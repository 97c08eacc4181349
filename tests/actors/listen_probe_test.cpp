#include "actors/listen_probe.hpp"

#include <string>

#include "support/catch.hpp"
#include "support/free_port.hpp"

namespace speedo {
namespace {

bool says(const Error& error, const std::string& text) {
  INFO(error.message);
  return error.message.find(text) != std::string::npos;
}

TEST_CASE("Why a port cannot be listened on is told apart") {
  test::ReservedPort taken;
  taken.listen();
  const Error in_use = why_not_listening("127.0.0.1", taken.port());
  CHECK(in_use.code == ErrorCode::kUnavailable);
  CHECK(says(in_use, taken.address() + ": the port is in use"));
  // TEST-NET-1 is nobody's address.
  const Error elsewhere = why_not_listening("192.0.2.7", 0);
  CHECK(elsewhere.code == ErrorCode::kUnavailable);
  CHECK(
      says(elsewhere, "cannot listen on 192.0.2.7: '192.0.2.7' is not an address of this machine"));
  CHECK(says(why_not_listening("no.such.host.invalid", 5), "no machine of this name is known"));
  CHECK(says(why_not_listening("127.0.0.1", 0), "in use a moment ago"));
}

}  // namespace
}  // namespace speedo
