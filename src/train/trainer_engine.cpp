// One run of a worker:
//   W = weights of at least the ordered version, straight into the net's arena
//   for each step s: g = gradient at W; u = rule(iteration + s, g); W -= u
//   contribution = W_after - W_before     (full delta)
//                = -u                     (full delta of one step: exact, where the difference of
//                                          two rounded values is not)
//                = g                      (gradient only, one step)

#include "train/trainer_engine.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>

#include "base/simd.hpp"
#include "train/job_solver.hpp"

namespace speedo {
namespace {

// Weights that the master announced are there, unless the store lost them: then the master
// publishes them again within seconds.
constexpr std::chrono::milliseconds kWeightsPoll{20};

std::uint64_t microseconds_since(Instant start) {
  const Instant passed = steady_clock().now() - start;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(passed).count());
}

// The backend whose arenas lie in host memory and are worked on before its calls return.
constexpr std::string_view kHostBackend = "cpu";

SPEEDO_MULTIVERSION void negate(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = -values[i];
}

// before = after - before
SPEEDO_MULTIVERSION void subtract(const float* after, float* before, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) before[i] = after[i] - before[i];
}

Error cancelled_error() { return Error{ErrorCode::kUnavailable, "run cancelled"}; }

}  // namespace

Result<std::unique_ptr<TrainerEngine>> TrainerEngine::create(
    const TrainerParts& parts, WorkerId worker, JobSpec job,
    std::shared_ptr<ParameterStore> store) {
  SPEEDO_ASSERT(job.steps_per_run > 0 && job.expected_workers > 0);
  if (job.update == UpdateKind::kGradientOnly && job.steps_per_run != 1) {
    return Error{ErrorCode::kConfig,
                 fmt::format("gradient only: a run has one step, the job says {}; use --train 1",
                             job.steps_per_run)};
  }
  auto engine = std::unique_ptr<TrainerEngine>(new TrainerEngine());
  engine->worker_ = worker;
  engine->store_ = std::move(store);
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(job));
  engine->solver_ = without_tests(std::move(solver));
  SPEEDO_ASSIGN(engine->backend_, parts.make_backend());
  engine->feeds_ = parts.make_feeds();
  SolverOptions options{.backend = engine->backend_.get(),
                        .feeds = engine->feeds_.get(),
                        .base = job.base};
  if (job.offset_shards) {
    options.start_fraction = static_cast<double>(worker.value % job.expected_workers) /
                             static_cast<double>(job.expected_workers);
  }
  SPEEDO_ASSIGN(engine->nets_, create_nets(engine->solver_, options));
  const ParameterLayout& layout = engine->nets_.train->layout();
  engine->model_ = layout.digest();
  const auto count = static_cast<std::size_t>(layout.element_count());
  if (engine->backend_->name() != kHostBackend) engine->stage_.resize(count);
  if (job.update == UpdateKind::kFullDelta) {
    SPEEDO_ASSIGN(engine->rule_, UpdateRule::create(engine->solver_, layout, *engine->backend_));
    if (job.steps_per_run > 1) engine->before_.resize(count);
  }
  engine->job_ = std::move(job);
  return engine;
}

Result<RunReport> TrainerEngine::run(const TrainMessage& order, const Cancelled& cancelled) {
  const Instant start = steady_clock().now();
  SPEEDO_ASSIGN(const RecordInfo weights, read_weights(order.version, cancelled));
  const std::uint64_t read_us = microseconds_since(start);

  const Instant compute_start = steady_clock().now();
  point_feeds(order);
  SPEEDO_ASSIGN(const float loss, compute(order, cancelled));
  const std::uint64_t compute_us = microseconds_since(compute_start);
  runs_done_ += 1;

  const Instant write_start = steady_clock().now();
  if (std::isfinite(loss)) {
    SPEEDO_TRY(write_contribution(order, weights.version, cancelled));
  }
  return RunReport{.run = RunId{order.run},
                   .loss = loss,
                   .base = Version{weights.version},
                   .samples = samples_per_run(),
                   .compute_us = compute_us,
                   .exchange_us = read_us + microseconds_since(write_start)};
}

Result<RecordInfo> TrainerEngine::read_weights(std::uint64_t version, const Cancelled& cancelled) {
  Arena& weights = nets_.train->weights();
  const std::span<float> target =
      stage_.empty() ? std::span<float>(weights.data(), static_cast<std::size_t>(weights.size()))
                     : std::span<float>(stage_);
  const Instant deadline = steady_clock().now() + kStoreCommandTimeout;
  while (true) {
    if (cancelled()) return cancelled_error();
    auto info = get(*store_, weights_key(), model_, target);
    if (info && info->version >= version) {
      if (!stage_.empty()) backend_->upload(weights.data(), target);
      if (!before_.empty()) std::copy(target.begin(), target.end(), before_.begin());
      return info;
    }
    if (!info && info.error().code != ErrorCode::kNotFound) return info;
    if (steady_clock().now() > deadline) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("store: weights version {} did not appear; was the store emptied?",
                               version)};
    }
    std::this_thread::sleep_for(kWeightsPoll);
  }
}

// A worker with a shard of its own counts its own runs; otherwise the master deals out the stream.
void TrainerEngine::point_feeds(const TrainMessage& order) {
  const auto iter_size = static_cast<std::uint64_t>(std::max(solver_.iter_size(), 1));
  const std::uint64_t batches = job_.steps_per_run * iter_size;
  const std::uint64_t run = job_.offset_shards ? runs_done_ : order.data_run;
  const std::uint64_t next = job_.offset_shards ? runs_done_ + 1 : order.next_data_run;
  nets_.train->set_data_span(
      DataSpan{.first = run * batches, .count = batches, .next = next * batches});
}

Result<float> TrainerEngine::compute(const TrainMessage& order, const Cancelled& cancelled) {
  double loss_sum = 0.0;
  for (std::uint32_t step = 0; step < job_.steps_per_run; ++step) {
    if (cancelled()) return cancelled_error();
    const auto iteration = static_cast<std::int64_t>(order.iteration + step);
    SPEEDO_ASSIGN(const float loss, compute_step(iteration, step + 1 == job_.steps_per_run));
    loss_sum += loss;
    if (!std::isfinite(loss)) break;
  }
  return static_cast<float>(loss_sum / job_.steps_per_run);
}

Result<float> TrainerEngine::compute_step(std::int64_t iteration, bool last) {
  Net& net = *nets_.train;
  SPEEDO_ASSIGN(const float loss, accumulate_gradients(net, std::max(solver_.iter_size(), 1)));
  if (job_.update == UpdateKind::kGradientOnly || !std::isfinite(loss)) return loss;
  rule_->compute_update(iteration, net.weights().data(), net.gradients().data());
  // The only step's update is the contribution itself: the weights are read anew before the next
  // run.
  const bool needs_weights = !(last && before_.empty());
  if (needs_weights) apply_update(*backend_, net.gradients().data(), net.weights());
  return loss;
}

// The contribution's memory on the host, its elements from `offset` final when this returns.
std::span<float> TrainerEngine::form_contribution(std::size_t offset, std::size_t count) {
  Net& net = *nets_.train;
  if (!before_.empty()) {
    const std::span<float> part = std::span<float>(before_).subspan(offset, count);
    const std::span<const float> after = host_part(net.weights(), offset, count);
    subtract(after.data(), part.data(), count);
    return part;
  }
  const std::span<float> part = host_part(net.gradients(), offset, count);
  if (job_.update == UpdateKind::kFullDelta) negate(part.data(), count);
  return part;
}

// A range of an arena as the host sees it: itself, or a copy in the staging memory.
std::span<float> TrainerEngine::host_part(Arena& arena, std::size_t offset, std::size_t count) {
  if (stage_.empty()) return {arena.data() + offset, count};
  const std::span<float> part = std::span<float>(stage_).subspan(offset, count);
  backend_->download(part, arena.data() + offset);
  return part;
}

// The store sends one chunk while the next is formed.
Result<void> TrainerEngine::write_contribution(const TrainMessage& order,
                                               std::uint64_t base_version,
                                               const Cancelled& cancelled) {
  const auto total = static_cast<std::size_t>(nets_.train->layout().element_count());
  const RecordInfo info{.model = model_,
                        .version = order.run,
                        .base_version = base_version,
                        .worker = worker_.value,
                        .element_count = total};
  const std::unique_ptr<RecordWriter> writer =
      store_->write(contribution_key(worker_.value), info);
  for (std::size_t chunk = 0; chunk < chunk_count(total); ++chunk) {
    if (cancelled()) return cancelled_error();
    const std::size_t offset = chunk * kChunkElements;
    writer->write(chunk, form_contribution(offset, std::min(kChunkElements, total - offset)));
  }
  return writer->finish();
}

std::uint64_t TrainerEngine::samples_per_run() const {
  for (const Net::LayerView& view : nets_.train->layers()) {
    const bool is_source = view.bottoms.empty() && !view.tops.empty();
    if (!is_source || view.tops[0]->shape().axes() == 0) continue;
    const auto batch = static_cast<std::uint64_t>(view.tops[0]->shape()[0]);
    return batch * static_cast<std::uint64_t>(std::max(solver_.iter_size(), 1)) *
           job_.steps_per_run;
  }
  return 0;
}

}  // namespace speedo
