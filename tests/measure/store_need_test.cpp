#include "measure/store_need.hpp"

#include <algorithm>

#include <speedo/base/limits.hpp>
#include <speedo/train/schedule.hpp>

#include "caffe.pb.h"
#include "support/catch.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kWeights = 1000;

caffe::SolverParameter typed_solver(const std::string& type) {
  caffe::SolverParameter solver;
  solver.set_type(type);
  solver.set_base_lr(0.1F);
  solver.set_lr_policy("fixed");
  return solver;
}

StoreNeed need_of(StoredJob job, const std::string& type = "SGD") {
  job.weight_bytes = kWeights;
  job.workers = 3;
  const auto need = store_need(job, typed_solver(type));
  INFO((need ? "" : need.error().message));
  REQUIRE(need);
  return *need;
}

TEST_CASE("A job's store holds all copies of weights, checkpoints and contributions") {
  UpdateSpec delta, gradient, averaging, elastic;
  gradient.kind = UpdateKind::kGradientOnly;
  averaging.updater = UpdaterState::kAverage;
  elastic.kind = UpdateKind::kElasticMaster;
  CHECK(need_of({.stages = {delta}}).least == 3 * kWeights);
  CHECK(need_of({.stages = {delta}}).all == (3 + 3 * 2) * kWeights);
  // A checkpoint has the weights too.
  CHECK(need_of({.stages = {gradient}}).least == (3 + 3 * 2) * kWeights);
  CHECK(need_of({.stages = {gradient}}, "Adam").least == (3 + 3 * 3) * kWeights);
  CHECK(need_of({.stages = {gradient}}, "Adam").all == (3 + 3 * 3 + 3 * 2) * kWeights);
  CHECK(need_of({.stages = {averaging}}, "Adam").least == 3 * 3 * kWeights);
  CHECK(need_of({.stages = {averaging}}, "Adam").all == (3 + 3 * 2) * 3 * kWeights);
  CHECK(need_of({.stages = {elastic}}).all == (3 + 3 * (2 + 2)) * kWeights);
  CHECK(need_of({.stages = {gradient}, .part_copies = true}).least == 2 * (3 + 3 * 2) * kWeights);
  gradient.replicated = true;
  CHECK(need_of({.stages = {gradient}}).least == (3 * 2 + 2 + 3) * kWeights);
  CHECK(need_of({.stages = {gradient}, .part_copies = true}).least ==
        (3 * 2 + 2 + 3) * kWeights);
  CHECK(need_of({.stages = {delta, averaging}}).least == 3 * 2 * kWeights);
  CHECK(need_of({.stages = {delta}, .part_copies = true}).least == 3 * 2 * kWeights);
  CHECK(need_of({.stages = {delta}, .part_copies = true}).all == (3 * 2 + 3 * 2) * kWeights);
  CHECK(need_of({.stages = {delta}, .worker_states = true}).all == (3 + 3 * 3) * kWeights);
  CHECK_FALSE(store_need({.stages = {delta}}, typed_solver("Unheard")));
}

TEST_CASE("What workers contribute in shared memory is not in the store, but for replicas") {
  UpdateSpec delta, replicated;
  replicated.kind = UpdateKind::kGradientOnly;
  replicated.replicated = true;
  CHECK(need_of({.stages = {delta}, .shares_memory = true}).all == 3 * kWeights);
  CHECK(need_of({.stages = {delta}, .worker_states = true, .shares_memory = true}).all ==
        (3 + 3) * kWeights);
  CHECK(need_of({.stages = {replicated}, .shares_memory = true}).all ==
        need_of({.stages = {replicated}}).all);
}

TEST_CASE("What is on its way to a store and from it is a few chunks of each client") {
  constexpr std::int64_t kChunk = kChunkBytes;
  CHECK(need_of({.stages = {UpdateSpec{}}}).on_its_way == 4 * (kWeights + kChunk));
  const auto large = store_need(
      {.stages = {UpdateSpec{}}, .weight_bytes = 100 * kChunk, .workers = 3}, typed_solver("SGD"));
  REQUIRE(large);
  CHECK(large->on_its_way == 4 * 4 * kChunk);
}

TEST_CASE("What an earlier stage's codec has left out is in the workers' states of later ones") {
  UpdateSpec coded, plain;
  coded.codec.kind = CodecKind::kOneBit;
  // The master keeps most in the later stage, for its replicas.
  coded.kind = plain.kind = UpdateKind::kGradientOnly;
  plain.replicated = true;
  CHECK(need_of({.stages = {plain}, .worker_states = true}).all ==
        (3 * 2 + 2 + 3 + 3 * 2) * kWeights);
  CHECK(need_of({.stages = {coded, plain}, .worker_states = true}).all ==
        (3 * 2 + 2 + 3 + 3 * (2 + 1)) * kWeights);
  // The stages come again.
  CHECK(need_of({.stages = {plain, coded}, .worker_states = true}).all ==
        (3 * 2 + 2 + 3 + 3 * (2 + 1)) * kWeights);
}

}  // namespace
}  // namespace speedo
