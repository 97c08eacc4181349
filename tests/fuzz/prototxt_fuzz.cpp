// Prototxt: nets that are only planned, and solvers.
#include "core/prototxt.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/plan_net.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(prototxt)(Bytes bytes) {
  Input input(bytes);
  const unsigned which = input.byte();
  const std::string text = input.text();
  if ((which & 4U) != 0) {
    const auto solver = parse_solver_prototxt(text, "fuzz");
    if (solver && solver->has_net_param()) plan_net(solver->net_param(), which);
    return;
  }
  const auto net = parse_net_prototxt(text, "fuzz");
  if (net) plan_net(*net, which);
}

}  // namespace
}  // namespace speedo::fuzz
