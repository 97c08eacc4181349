// oneDNN that describes a kernel and cannot make it.

#include <dlfcn.h>

#include <speedo/cpu/cpu_backend.hpp>

#include "backend/conformance.hpp"
#include "cpu/isa.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace {
bool fails = false;
int failures = 0;
constexpr int kOutOfMemory = 1;  // dnnl_out_of_memory
}  // namespace

// The linker takes this one for the library's.
extern "C" int dnnl_primitive_create(void** primitive, const void* description) {
  if (fails) {
    ++failures;
    return kOutOfMemory;
  }
  using Create = int (*)(void**, const void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "dnnl_primitive_create"));
  return create(primitive, description);
}

namespace speedo {
namespace {

TEST_CASE("a convolution whose kernel oneDNN cannot make is computed in another way") {
  if (!cpu::uses_onednn()) SPEEDO_SKIP("needs oneDNN");
  ConvolutionShape shape = convolution_shape(3, 16, 32, {9, 9}, {3, 3}, 1);
  const auto kind = GENERATE(LayoutKind::kPlain, LayoutKind::kBlocked16, LayoutKind::kChannelsLast);
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  const ArrayShape src{3, 16, 81}, dst{3, 32, 49};
  failures = 0;
  int served = 0;
  require_conforming(2e-6, [&](Workbench& bench) {
    auto usual = bench.backend().make_convolution(shape);
    REQUIRE(usual.has_value());
    if ((*usual)->info().kernel.find("onednn") != std::string::npos) ++served;
    fails = true;
    auto made = bench.backend().make_convolution(shape);
    fails = false;
    REQUIRE(made.has_value());
    CHECK((*made)->info().kernel.find("onednn") == std::string::npos);
    const float* x = bench.put_array(src, shape.src_layout, test_values(src));
    const float* y_grad = bench.put_array(dst, shape.dst_layout, test_values(dst, -1, 1, 2));
    float* w = bench.put(test_values(32 * 16 * 9, -1, 1, 3));
    float* bias = bench.put(test_values(32, -1, 1, 4));
    float* y = bench.blank_array(dst, shape.dst_layout);
    float* x_grad = bench.blank_array(src, shape.src_layout);
    (*made)->forward(x, w, bias, y);
    (*made)->backward_data(y_grad, w, x_grad);
    return join(bench.get_array(dst, shape.dst_layout, y),
                bench.get_array(src, shape.src_layout, x_grad));
  });
  CHECK(failures >= served);
}

}  // namespace
}  // namespace speedo
