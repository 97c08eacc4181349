// Counts what the heap is asked for while a net trains. Sanitizers have a heap of their own.
#ifndef SPEEDO_SANITIZED

#include <atomic>
#include <cstdlib>
#include <new>

#include <speedo/backend/backend.hpp>
#include <speedo/core/solver.hpp>

#include "net_run.hpp"
#include "net_support.hpp"

namespace {

// oneDNN makes a map of its arguments in every execution; nothing of ours is that small.
constexpr std::size_t kLeastBytes = 512;

std::atomic<bool> is_counting{false};
std::atomic<int> allocation_count{0};

void* counted(std::size_t bytes) {
  if (is_counting && bytes >= kLeastBytes) ++allocation_count;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

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

TEST_CASE("a training iteration allocates nothing", "[memory]") {
  const auto net = make_net(image_net());
  caffe::SolverParameter solver;
  solver.set_base_lr(0.01F);
  solver.set_lr_policy("fixed");
  solver.set_momentum(0.9F);
  const auto rule = UpdateRule::create(solver, net->layout(), test_backend());
  REQUIRE(rule.has_value());
  const auto iterate = [&](std::int64_t iteration) {
    const bool done = accumulate_gradients(*net, 1).has_value();
    (*rule)->update(iteration, net->weights().data(), net->gradients().data());
    return done;
  };
  REQUIRE(iterate(0));
  allocation_count = 0;
  is_counting = true;
  const bool done = iterate(1) && iterate(2);
  is_counting = false;
  CHECK(done);
  CHECK(allocation_count == 0);
}

}  // namespace
}  // namespace speedo

#endif
