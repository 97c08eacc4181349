// What debug_info says of each pass.

#include <string>

#include "core/debug_info.hpp"
#include "core/net_support.hpp"
#include "core/solver_support.hpp"
#include "support/log_capture.hpp"

namespace speedo {
namespace {

using test::LogCapture;

NetOptions debug_options() {
  NetOptions options = net_options();
  options.keep_blobs = true;
  options.may_fuse = false;
  return options;
}

// A parameter's gradient is computed or not; its rate says what becomes of it.
TEST_CASE("debug_info has a line for each gradient that is computed", "[solver]") {
  const bool is_forced = GENERATE(false, true);
  CAPTURE(is_forced);
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 1 }";
  const auto net = make_net(std::string(is_forced ? "force_backward: true\n" : "") +
                                input("data", "dim: 2 dim: 3") + input("label", "dim: 2 dim: 3") +
                                product("ip", "data", frozen) + loss("ip", "label"),
                            debug_options());
  const LogCapture log;
  REQUIRE(run_passes_with_debug_info(*net, 1));
  CHECK(log.has("[Backward] Layer ip, param blob 0 diff: ") == is_forced);
  CHECK(log.has("[Backward] Layer ip, param blob 1 diff: "));
}

// A rate that is not said is 1, and says nothing of the owner's.
TEST_CASE("of a shared parameter each user's own rate says whether it computes a gradient") {
  const auto user = [](const std::string& name, const std::string& bottom, const char* rate) {
    return product(name, bottom, std::string("param { name: 'w' ") + rate + " }");
  };
  const auto net = make_net(input("data", "dim: 2 dim: 3") + input("label", "dim: 2 dim: 3") +
                                user("owner", "data", "lr_mult: 0") + user("user", "owner", "") +
                                loss("user", "label"),
                            debug_options());
  const LogCapture log;
  REQUIRE(run_passes_with_debug_info(*net, 1));
  CHECK_FALSE(log.has("[Backward] Layer owner, param blob 0 diff: "));
  CHECK(log.has("[Backward] Layer user, param blob 0 diff: "));
}

TEST_CASE("debug_info tells of the passes of tests too", "[solver]") {
  test::World world;
  const std::string tests = "max_iter: 4 test_iter: 2 test_interval: 2 ";
  const auto plain = world.solver(test::small_solver(tests));
  // One whose test net has a layer with parameters of its own.
  caffe::SolverParameter message = test::small_solver(tests + "debug_info: true");
  message.mutable_net_param()->MergeFrom(
      net_message(product("own", "ip2", "include { phase: TEST }") +
                  "layer { name: 'quiet' type: 'Silence' bottom: 'own' include { phase: TEST } }"));
  const auto debug = world.solver(message);
  REQUIRE(plain->solve());
  const LogCapture log;
  set_log_level(LogLevel::kInfo);
  REQUIRE(debug->solve());
  CHECK(log.has("[Forward] Layer accuracy, top blob accuracy data: "));
  CHECK(log.has("[Forward] Layer own, param blob 1 data: "));
  set_log_level(LogLevel::kNothing);
  REQUIRE(plain->last_scores().size() == 1);
  CHECK(plain->last_scores()[0].loss == debug->last_scores()[0].loss);
  CHECK(plain->last_scores()[0].accuracy == debug->last_scores()[0].accuracy);
}

}  // namespace
}  // namespace speedo
