#include "sim/proof/quadratic_learner.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace speedo::sim {

namespace {

constexpr Instant kProgressTime = std::chrono::milliseconds(100);
constexpr double kForwardPart = 1.0 / 3.0, kBackwardPart = 2.0 / 3.0;

}  // namespace

std::uint64_t ComputeState::progress_at(Instant now) const {
  const bool gets_on = computing && now >= stalled_until && now > since;
  return progress + (gets_on ? static_cast<std::uint64_t>((now - since) / kProgressTime) : 0);
}

Result<std::unique_ptr<Learner>> QuadraticLearner::create(const Parts& parts,
                                                          std::unique_ptr<Backend> backend) {
  std::unique_ptr<QuadraticLearner> made(new QuadraticLearner(parts, std::move(backend)));
  const auto count = static_cast<std::int64_t>(parts.problem.size());
  SPEEDO_ASSIGN(made->weights_, Arena::create(*made->backend_, count));
  SPEEDO_ASSIGN(made->gradients_, parts.shares_memory
                                      ? Arena::create_shared(*made->backend_, count)
                                      : Arena::create(*made->backend_, count));
  return std::unique_ptr<Learner>(std::move(made));
}

void QuadraticLearner::set_batch_span(const BatchSpan& span) {
  next_batch_ = span.first;
  span_batches_ = span.count;
}

// Half to one and a half of the mean; a run of several steps takes as long as one of one.
void QuadraticLearner::take_time(int passes, double part) {
  ComputeState& state = parts_.state;
  const Clock& clock = parts_.platform.clock();
  part *= static_cast<double>(passes) * passes / static_cast<double>(span_batches_);
  const double mean = static_cast<double>(state.batch_time.count()) * part;
  state.since = clock.now();
  state.computing = true;
  parts_.platform.sleep(
      Instant{static_cast<Instant::rep>(mean * static_cast<double>(random_.uniform(0.5F, 1.5F)))});
  while (clock.now() < state.stalled_until) {
    state.stall.felt();
    parts_.platform.sleep(state.stalled_until - clock.now());
  }
  state.progress = state.progress_at(clock.now());
  state.computing = false;
}

Result<float> QuadraticLearner::accumulate_gradients(int passes, const Hooks& hooks) {
  const auto count = static_cast<std::int64_t>(parts_.problem.size());
  // As a net of two layers: the second one's weights are needed later, its gradients ready earlier.
  if (hooks.weights_needed) SPEEDO_TRY(hooks.weights_needed({0, count / 2}));
  take_time(passes, kForwardPart);
  if (hooks.weights_needed) SPEEDO_TRY(hooks.weights_needed({0, count}));
  std::vector<float> x(parts_.problem.size()), gradient(parts_.problem.size());
  backend_->device().download(x, weights_read());
  forward_weights_ = x;
  if (parts_.state.on_weights) parts_.state.on_weights(x);
  double loss = 0.0;
  for (int pass = 0; pass < passes; ++pass) {
    loss += static_cast<double>(parts_.problem.add_gradient(x, next_batch_++, gradient));
  }
  const float mean = is_spoilt(ComputeState::Spoilt::kLoss)
                         ? std::numeric_limits<float>::quiet_NaN()
                         : static_cast<float>(loss / passes);
  backend_->device().upload(gradients_.data(), gradient);
  if (std::isfinite(mean)) report(hooks, passes);
  return mean;
}

void QuadraticLearner::report(const Hooks& hooks, int passes) {
  const auto count = static_cast<std::int64_t>(parts_.problem.size());
  if (hooks.last_backward) hooks.last_backward();
  for (const Bucket& bucket : {Bucket{count / 2, count - count / 2}, Bucket{0, count / 2}}) {
    take_time(passes, kBackwardPart / 2);
    read_again(bucket);
    if (hooks.gradient_ready) hooks.gradient_ready(bucket, StreamEvent());
    if (is_spoilt(ComputeState::Spoilt::kContribution)) spoil_last_element();
  }
}

// Backward passes need the weights of the forward pass, and are wrong by what changed.
void QuadraticLearner::read_again(const Bucket& bucket) {
  const float* const now = weights_read();
  float* const gradients = gradients_.data();
  for (std::int64_t i = bucket.offset; i < bucket.offset + bucket.count; ++i) {
    const float before = forward_weights_[static_cast<std::size_t>(i)];
    if (now[i] != before) gradients[i] += now[i] - before;
  }
}

// Once.
bool QuadraticLearner::is_spoilt(ComputeState::Spoilt how) {
  if (parts_.state.spoilt != how) return false;
  parts_.state.spoilt = ComputeState::Spoilt::kNothing;
  parts_.state.on_spoilt();
  return true;
}

// Of the bucket that was ready first: the worker has looked at it, and it has not gone out yet.
void QuadraticLearner::spoil_last_element() {
  const std::int64_t last = static_cast<std::int64_t>(parts_.problem.size()) - 1;
  for (Arena* arena : {&gradients_, &weights_}) {
    backend_->fill(1, std::numeric_limits<float>::infinity(), arena->data() + last);
  }
}

}  // namespace speedo::sim
