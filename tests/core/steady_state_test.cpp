// Counts what the heap is asked for while a net trains. Sanitizers have a heap of their own.
#ifndef SPEEDO_SANITIZED

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <speedo/backend/backend.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "net_run.hpp"
#include "net_support.hpp"

namespace {

std::atomic<bool> is_counting{false};
std::atomic<int> allocation_count{0};

// oneDNN makes a map of its arguments in every execution, and OpenBLAS buffers in small products.
bool is_their_own() {
  std::array<void*, 32> frames{};
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 0; i < depth; ++i) {
    Dl_info info{};
    if (dladdr(frames[static_cast<std::size_t>(i)], &info) == 0) continue;
    for (const char* library : {"libdnnl", "libopenblas"}) {
      if (std::strstr(info.dli_fname, library) != nullptr) return true;
    }
  }
  return false;
}

void count_allocation() {
  thread_local bool is_inside = false;  // What looks at the stack may allocate itself.
  if (!is_counting || is_inside) return;
  is_inside = true;
  if (!is_their_own()) ++allocation_count;
  is_inside = false;
}

}  // namespace

// In the place of the C library's, for all libraries of this program; operator new calls them.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  count_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count_allocation();
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count_allocation();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}

namespace speedo {
namespace {

// Every kind of layer that a published image net has.
std::string image_net() {
  const std::string pool = "pooling_param { kernel_size: 3 stride: 2 }";
  const std::string mean = "pooling_param { pool: AVE global_pooling: true }";
  return input("label", "dim: 2") + input("data", "dim: 2 dim: 3 dim: 13 dim: 13") +
         conv("a", "data", 16) + in_place("ReLU", "a") + layer("p", "Pooling", {"a"}, pool) +
         layer("n", "LRN", {"p"}) + conv("b", "n", 16) + in_place("BatchNorm", "b") +
         in_place("Scale", "b") + in_place("ReLU", "b") + conv("c", "n", 16, 1) +
         layer("sum", "Eltwise", {"b", "c"}) + layer("cat", "Concat", {"sum", "c"}) +
         layer("m", "Pooling", {"cat"}, mean) + layer("d", "Dropout", {"m"}) +
         product("score", "d") + layer("loss", "SoftmaxWithLoss", {"score", "label"}) +
         layer("accuracy", "Accuracy", {"score", "label"});
}

// What `work` asks the heap for.
template <class Work>
int allocations_of(const Work& work) {
  allocation_count = 0;
  is_counting = true;
  work();
  is_counting = false;
  return allocation_count;
}

TEST_CASE("every way to the heap is counted", "[memory]") {
  void* memory = nullptr;
  is_their_own();  // Loads what looks at the stack.
  CHECK(allocations_of([] {}) == 0);
  CHECK(allocations_of([&] { memory = std::malloc(1); }) == 1);
  CHECK(allocations_of([&] { memory = std::realloc(memory, 100); }) == 1);
  std::free(memory);
  CHECK(allocations_of([&] { memory = std::calloc(1, 8); }) == 1);
  std::free(memory);
  CHECK(allocations_of([&] { memory = std::aligned_alloc(64, 64); }) == 1);
  std::free(memory);
  std::unique_ptr<int> object;
  CHECK(allocations_of([&] { object = std::make_unique<int>(3); }) == 1);
  CHECK(*object == 3);
}

TEST_CASE("a training iteration allocates nothing", "[memory]") {
  const auto backend = make_cpu_backend(GENERATE(1, 2));
  NetOptions options = net_options();
  options.backend = backend.get();
  const auto net = make_net(image_net(), options);
  caffe::SolverParameter solver;
  solver.set_base_lr(0.01F);
  solver.set_lr_policy("fixed");
  solver.set_momentum(0.9F);
  const auto rule = UpdateRule::create(solver, net->layout(), *backend);
  REQUIRE(rule.has_value());
  bool done = true;
  const auto iterate = [&](std::int64_t iteration) {
    done = done && accumulate_gradients(*net, 1).has_value();
    (*rule)->update(iteration, net->weights().data(), net->gradients().data());
  };
  iterate(0);
  is_their_own();  // Loads what looks at the stack.
  const int allocations = allocations_of([&] {
    iterate(1);
    iterate(2);
  });
  CHECK(done);
  CHECK(allocations == 0);
}

}  // namespace
}  // namespace speedo

#endif
