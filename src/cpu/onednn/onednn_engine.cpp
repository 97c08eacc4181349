#include "cpu/onednn/onednn_engine.hpp"

#include <omp.h>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "cpu/onednn/onednn.hpp"
#include "cpu/onednn/signal_stack.hpp"

namespace speedo::cpu {

bool has_onednn() { return true; }

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

bool limit_onednn(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
      return dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41) == dnnl::status::success;
    case CpuIsa::kAvx2:
      return dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2) == dnnl::status::success;
    case CpuIsa::kAvx512:
      break;
  }
  return true;
}

void onednn_gemm(const Backend::Gemm& product, GemmMatrix a, GemmMatrix b, GemmTarget c) {
  onednn::thread_stream();
  const auto flag = [](Op op) { return op == Op::kNone ? 'N' : 'T'; };
  const Backend::GemmShape& shape = product.shape;
  const dnnl_status_t status =
      dnnl_sgemm(flag(product.a_op), flag(product.b_op), shape.m, shape.n, shape.k, product.alpha,
                 a.data, a.stride, b.data, b.stride, product.beta, c.data, c.stride);
  SPEEDO_ASSERT(status == dnnl_success);
}

namespace onednn {

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

const dnnl::stream& thread_stream() {
  thread_local const SignalStack signal_stack;
  thread_local const dnnl::stream stream = [] {
    omp_set_num_threads(1);
    return dnnl::stream(cpu_engine());
  }();
  return stream;
}

BoundPrimitive::BoundPrimitive(const dnnl::primitive& primitive,
                               const std::vector<Argument>& arguments)
    : primitive_(primitive) {
  for (const Argument& argument : arguments) {
    memories_.emplace_back();
    if (argument.desc.get_size() == 0) continue;
    memories_.back() = dnnl::memory(argument.desc, cpu_engine(), DNNL_MEMORY_NONE);
    arguments_.push_back({argument.name, memories_.back().get()});
  }
}

void BoundPrimitive::place(std::size_t argument, const void* place) {
  thread_stream();  // Writing padding, oneDNN would start OpenMP's threads.
  dnnl::memory& memory = memories_[argument];
  if (memory.get_data_handle() != place) memory.set_data_handle(const_cast<void*>(place));
}

void BoundPrimitive::run(std::initializer_list<const void*> places) {
  SPEEDO_ASSERT(places.size() == memories_.size());
  const dnnl::stream& stream = thread_stream();
  std::size_t i = 0;
  for (const void* place : places) {
    // Each time: oneDNN 2 writes zeros into the padding then, and not all its kernels do.
    if (place != nullptr && memories_[i]) memories_[i].set_data_handle(const_cast<void*>(place));
    ++i;
  }
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data());
  SPEEDO_ASSERT(status == dnnl_success);
}

BoundPrimitive make_reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                            bool add) {
  dnnl::primitive_attr attributes;
  if (add) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  const dnnl::reorder::primitive_desc description(cpu_engine(), from, cpu_engine(), to, attributes);
  return {dnnl::reorder(description), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

}  // namespace onednn
}  // namespace speedo::cpu
