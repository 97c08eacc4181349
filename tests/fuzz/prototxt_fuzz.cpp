// Prototxt: nets that are only planned, and solvers.
#include <algorithm>
#include <cstring>

#include "core/prototxt.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/mutate_message.hpp"
#include "fuzz/plan_net.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(prototxt)(Bytes bytes) {
  Input input(bytes);
  const unsigned which = input.byte();
  const MemoryFile file(input.left());
  if ((which & 4U) != 0) {
    const auto solver = read_solver_prototxt(file.path());
    if (solver && solver->has_net_param()) plan_net(solver->net_param(), which);
    return;
  }
  const auto net = read_net_prototxt(file.path());
  if (net) plan_net(*net, which);
}

}  // namespace
}  // namespace speedo::fuzz

#ifdef SPEEDO_LIBFUZZER
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

// Half of the changes are to the message that the text says; libFuzzer's own hardly ever leave it
// a net.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
  using speedo::fuzz::mutate;
  if (size < 2 || seed % 2 == 0) return LLVMFuzzerMutate(data, size, max);
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string changed;
  if ((data[0] & 4U) != 0) {
    caffe::SolverParameter solver;
    if (!speedo::parse_prototxt(text, "fuzz", solver)) return LLVMFuzzerMutate(data, size, max);
    mutate(solver, seed);
    changed = speedo::to_prototxt(solver);
  } else {
    caffe::NetParameter net;
    if (!speedo::parse_prototxt(text, "fuzz", net)) return LLVMFuzzerMutate(data, size, max);
    mutate(net, seed);
    changed = speedo::to_prototxt(net);
  }
  const std::size_t length = std::min(changed.size(), max - 1);
  std::memcpy(data + 1, changed.data(), length);
  return 1 + length;
}
#endif
