#include "drawn_gate.hpp"

#include <array>
#include <cstdlib>

#include "cluster.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo::test {
namespace {

std::string drawn_name() {
  if (const char* wanted = std::getenv("SPEEDO_TEST_GATE"); wanted != nullptr) return wanted;
  return std::array{"open", "token", "certificates"}[fresh_seed() % 3];
}

}  // namespace

void run_speedo(const Arguments& words, const std::filesystem::path& log) {
  Process process(joined({program("speedo")}, words), log);
  INFO(process.errors());
  REQUIRE(process.wait() == 0);
}

Arguments certificate_flags(const std::string& authority, const std::string& name) {
  return {"--tls-cert", authority + "/" + name + ".pem", "--tls-key",
          authority + "/" + name + ".key", "--tls-ca", authority + "/ca.pem"};
}

DrawnGate DrawnGate::make(const std::filesystem::path& folder) {
  const std::string name = drawn_name();
  DrawnGate gate;
  if (name == "token") {
    const std::string file = (folder / "gate.token").string();
    run_speedo({"token", "create", file}, folder / "gate");
    gate.master_flags_ = gate.worker_flags_ = {"--token-file", file};
  } else if (name == "certificates") {
    const std::string authority = (folder / "gate.authority").string();
    run_speedo({"cert", "init", authority}, folder / "gate");
    run_speedo({"cert", "issue", authority, "head", "--role", "master"}, folder / "gate");
    run_speedo({"cert", "issue", authority, "node"}, folder / "gate");
    gate.master_flags_ = certificate_flags(authority, "head");
    gate.worker_flags_ = certificate_flags(authority, "node");
  } else if (name != "open") {
    FAIL("SPEEDO_TEST_GATE is '" << name << "', not open, token or certificates");
  }
  return gate;
}

}  // namespace speedo::test
