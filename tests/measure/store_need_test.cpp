#include "measure/store_need.hpp"

#include <algorithm>

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

TEST_CASE("A job's store holds two versions of the weights, histories, and contributions") {
  UpdateSpec delta, gradient, averaging, elastic;
  gradient.kind = UpdateKind::kGradientOnly;
  averaging.updater = UpdaterState::kAverage;
  elastic.kind = UpdateKind::kElasticMaster;
  CHECK(need_of({.stages = {delta}}).least == 2 * kWeights);
  CHECK(need_of({.stages = {delta}}).all == (2 + 3) * kWeights);
  CHECK(need_of({.stages = {gradient}}).least == (2 + 2) * kWeights);
  CHECK(need_of({.stages = {gradient}}, "Adam").least == (2 + 4) * kWeights);
  CHECK(need_of({.stages = {gradient}}, "Adam").all == (2 + 4 + 3) * kWeights);
  CHECK(need_of({.stages = {averaging}}, "Adam").least == 2 * 3 * kWeights);
  CHECK(need_of({.stages = {averaging}}, "Adam").all == (2 + 3) * 3 * kWeights);
  CHECK(need_of({.stages = {elastic}}).all == (2 + 3 * 2) * kWeights);
  gradient.replicated = true;
  CHECK(need_of({.stages = {gradient}}).least == (2 + 2 + 2) * kWeights);
  CHECK(need_of({.stages = {delta, averaging}}).least == 2 * 2 * kWeights);
  CHECK(need_of({.stages = {delta}, .part_copies = true}).least == 2 * 2 * kWeights);
  CHECK(need_of({.stages = {delta}, .part_copies = true}).all == (2 * 2 + 3) * kWeights);
  CHECK(need_of({.stages = {delta}, .worker_states = true}).all == (2 + 3 * 2) * kWeights);
  CHECK_FALSE(store_need({.stages = {delta}}, typed_solver("Unheard")));
}

TEST_CASE("What an earlier stage's codec has left out is in the workers' states of later ones") {
  UpdateSpec coded, plain;
  coded.codec.kind = CodecKind::kOneBit;
  // The master keeps most in the later stage, for its replicas.
  coded.kind = plain.kind = UpdateKind::kGradientOnly;
  plain.replicated = true;
  CHECK(need_of({.stages = {plain}, .worker_states = true}).all == (2 + 2 + 2 + 3) * kWeights);
  CHECK(need_of({.stages = {coded, plain}, .worker_states = true}).all ==
        (2 + 2 + 2 + 3 * 2) * kWeights);
  // The stages come again.
  CHECK(need_of({.stages = {plain, coded}, .worker_states = true}).all ==
        (2 + 2 + 2 + 3 * 2) * kWeights);
}

}  // namespace
}  // namespace speedo
