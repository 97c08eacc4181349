#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <initializer_list>
#include <utility>
#include <vector>

namespace speedo::cpu::onednn {

// What makes something here throws dnnl::error where oneDNN cannot.

const dnnl::engine& cpu_engine();

// The calling thread's; from now on OpenMP makes no threads for it. To be asked for before oneDNN
// describes or runs anything in a thread: it plans for as many threads as OpenMP offers.
const dnnl::stream& thread_stream();

// A primitive bound to memories whose places are told at each run. For one thread at a time.
class BoundPrimitive {
 public:
  struct Argument {
    int name;  // DNNL_ARG_...
    dnnl::memory::desc desc;
  };
  // Arguments of size 0 are left out.
  BoundPrimitive(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);
  // Places an argument for all runs to come. Writes its padding, so an array that several threads
  // read is placed by one of them before they run.
  void place(std::size_t argument, const void* place);
  // `places`: of the arguments, in their order; null for those left out or placed before.
  void run(std::initializer_list<const void*> places);

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;  // empty ones for arguments left out
  std::vector<dnnl_exec_arg_t> arguments_;
};

// A copy between two descriptions of one array, run({from, to}); with `add` the target is added to.
BoundPrimitive make_reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                            bool add = false);

}  // namespace speedo::cpu::onednn
