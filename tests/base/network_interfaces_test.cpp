#include "base/network_interfaces.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

const std::vector<InterfaceAddress> kAll{{"lo", "127.0.0.1", false},
                                         {"eth0", "192.168.3.7", false},
                                         {"eth1", "10.1.2.3", false},
                                         {"eth1", "10.1.9.9", false},
                                         {"lo", "::1", true},
                                         {"eth2", "fd00::12", true}};

std::string refusal(const std::string& wanted) {
  const auto chosen = choose_address(wanted, kAll);
  REQUIRE_FALSE(chosen);
  CHECK(chosen.error().code == ErrorCode::kUsage);
  CHECK(chosen.error().message.find("--iface " + wanted + ": ") == 0);
  return chosen.error().message;
}

TEST_CASE("an interface means its first address, a network the one in it") {
  CHECK(choose_address("eth0", kAll).value() == "192.168.3.7");
  CHECK(choose_address("eth1", kAll).value() == "10.1.2.3");
  CHECK(choose_address("eth2", kAll).value() == "fd00::12");
  CHECK(choose_address("192.168.0.0/16", kAll).value() == "192.168.3.7");
  CHECK(choose_address("10.1.2.3/32", kAll).value() == "10.1.2.3");
  CHECK(choose_address("10.1.8.0/21", kAll).value() == "10.1.9.9");
  CHECK(choose_address("fd00::/8", kAll).value() == "fd00::12");
}

TEST_CASE("what means no address, or several, is refused with those that there are") {
  CHECK(refusal("eth7").find("eth0 192.168.3.7") != std::string::npos);
  CHECK(refusal("172.16.0.0/12").find("no address in it") != std::string::npos);
  CHECK(refusal("10.0.0.0/8").find("several") != std::string::npos);
  for (const char* nonsense :
       {"10.0.0.0/33", "10.0.0/8", "/", "10.0.0.0/", "10.0.0.0/-1", "fd00::/129"}) {
    CHECK(refusal(nonsense).find("as 10.1.0.0/16") != std::string::npos);
  }
  CHECK(choose_address("eth0", {}).error().message.find("none that is up") != std::string::npos);
}

TEST_CASE("this machine has its loopback") {
  const auto all = interface_addresses();
  REQUIRE(all);
  CHECK(choose_address("127.0.0.1/32", *all).value() == "127.0.0.1");
}

}  // namespace
}  // namespace speedo
