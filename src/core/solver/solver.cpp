// Caffe's training loop: the order of actions is part of the contract, as logs, snapshots and tests
// of both programs are compared line by line.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>

#include "base/log.hpp"
#include "base/log_lines.hpp"
#include "base/trace.hpp"
#include "core/debug_info.hpp"
#include "core/net/net_outputs.hpp"
#include "core/non_finite.hpp"
#include "core/prototxt.hpp"
#include "core/shown_names.hpp"
#include "core/solver/solver_checks.hpp"
#include "core/solver/solver_impl.hpp"
#include "core/solver/solver_log.hpp"

namespace speedo {

// Begins a stretch of iterations: its first batch, its loss window, its clock.
void Solver::Impl::start(std::int64_t at) {
  stopped = false;
  first_iteration = at;
  sound_iteration = -1;
  loud_iteration = -1;
  smoothed = SmoothedLoss(static_cast<std::size_t>(param.average_loss()));
  read_from(at);
  displayed_iteration = at;
  displayed_at = steady_clock().now();
}

Result<void> Solver::Impl::run_until(std::int64_t end) {
  bool went_back = true;
  while (went_back) {
    while (iteration < end && !stopped) SPEEDO_TRY(iterate());
    SPEEDO_ASSIGN(went_back, settle());
  }
  return {};
}

// The next forward pass is the first of this iteration.
void Solver::Impl::read_from(std::int64_t at) {
  const std::uint64_t step = static_cast<std::uint64_t>(at) + steps_ahead;
  nets.train->set_batch_span({.first = step * static_cast<std::uint64_t>(param.iter_size())});
}

Result<void> Solver::Impl::iterate() {
  if (is_quiet()) return iterate_quietly();
  SPEEDO_ASSIGN(const bool went_back, settle());
  if (went_back) return {};
  SPEEDO_TRY(test_if_due());
  if (stopped) return {};
  kept->keep();
  SPEEDO_ASSIGN(const Pass pass, pass_over_data());
  const float loss = pass.loss;
  if (!std::isfinite(loss) || pass.is_skipped) kept->restore();
  SPEEDO_ASSIGN(const bool accepted, accept_loss(loss));
  if (accepted) smoothed.add(loss);
  if (display_due()) show_progress(accepted ? smoothed.value() : loss);
  show_rate();
  if (accepted && !pass.is_skipped) update();
  ++iteration;
  if (hooks.progress) hooks.progress(iteration, loss);
  if (due(iteration, param.snapshot()) && iteration != last_iteration) SPEEDO_TRY(snapshot());
  return poll();
}

std::chrono::nanoseconds Solver::Impl::waited() const {
  return feeds == nullptr ? std::chrono::nanoseconds(0) : feeds->totals().waited;
}

Result<Solver::Impl::Pass> Solver::Impl::pass_over_data() {
  const bool debug = param.debug_info() && display_due();
  if (scale) nets.train->set_gradient_scale(scale->value());
  const Instant start = steady_clock().now();
  const std::chrono::nanoseconds waited_before = waited();
  Result<Accumulated> passed = debug ? run_passes_with_debug_info(*nets.train, param.iter_size())
                                     : run_passes(*nets.train, param.iter_size());
  const std::chrono::nanoseconds data_wait = waited() - waited_before;
  times.data_wait += data_wait;
  times.compute += steady_clock().now() - start - data_wait;
  SPEEDO_TRY(passed);
  const bool is_finite = std::isfinite(passed->loss);
  if (passed->has_finite_gradients) {
    if (scale && is_finite) scale->succeed();
    return Pass{passed->loss, false};
  }
  if (!scale || !is_finite || !scale->overflow()) {
    return Pass{std::numeric_limits<float>::quiet_NaN(), false};
  }
  SPEEDO_INFO("Iteration {}: a gradient is beyond float16; it is dropped, and the loss scale is "
              "{:g} from here on",
              iteration, scale->value());
  return Pass{passed->loss, true};
}

// What was not finite first in this iteration. The gradients are still there, its passes run again.
Result<std::string> Solver::Impl::find_non_finite() {
  read_from(iteration);
  SPEEDO_ASSIGN(std::string found, find_non_finite_values(*nets.train, param.iter_size()));
  kept->restore();
  read_from(iteration + 1);
  const Bucket all{0, nets.train->layout().element_count()};
  return found.empty() ? find_non_finite_gradients(*nets.train, all) : found;
}

// Whether an iteration with this loss may change the weights.
Result<bool> Solver::Impl::accept_loss(float loss) {
  if (std::isfinite(loss)) {
    non_finite_in_a_row = 0;
    return true;
  }
  ++non_finite_in_a_row;
  SPEEDO_ASSIGN(const std::string found, find_non_finite());
  const std::string first = found.empty() ? "" : ", first not finite is " + found;
  SPEEDO_WARN("Iteration {}: the loss is {}{}; its gradient is dropped ({} of {} in a row)",
              iteration, number_text(loss), first, non_finite_in_a_row, non_finite_max);
  if (non_finite_in_a_row < non_finite_max) return false;
  const std::string often =
      non_finite_max == 1 ? "" : fmt::format(" {} times in a row", non_finite_max);
  return diverged(
      fmt::format("iteration {}: the loss was not finite{}{}", iteration, often, first));
}

void Solver::Impl::show_progress(float loss) {
  const Instant now = steady_clock().now();
  const std::chrono::duration<float> seconds = now - displayed_at;
  log_progress({.iteration = iteration,
                .iterations_done = iteration - displayed_iteration,
                .seconds = seconds.count(),
                .display = param.display(),
                .loss = loss});
  displayed_iteration = iteration;
  displayed_at = now;
  log_outputs("Train", read_outputs(*nets.train));
}

void Solver::Impl::show_rate() const {
  const std::int32_t steps = current_step(param, iteration);
  if (param.lr_policy() == "multistep" && iteration > 0 &&
      steps != current_step(param, iteration - 1)) {
    SPEEDO_INFO("MultiStep Status: Iteration {}, step = {}", iteration, steps);
  }
  if (!display_due()) return;
  const Result<float> rate = learning_rate(param, iteration);
  SPEEDO_ASSERT(rate.has_value());
  SPEEDO_INFO("Iteration {}, lr = {:g}", iteration, *rate);
}

void Solver::Impl::update() {
  Net& net = *nets.train;
  const TraceSpan span("update");
  const Instant start = steady_clock().now();
  rule->update(iteration, net.weights().data(), net.gradients().data());
  times.compute += steady_clock().now() - start;
}

// Whether the weights give a finite loss for one of the batches that begin with iteration `at`.
Result<bool> Solver::Impl::gives_finite_loss(std::int64_t at, int batches) {
  bool finite = false;
  read_from(at);
  for (int batch = 0; batch < batches && !finite; ++batch) {
    kept->keep();
    SPEEDO_ASSIGN(const float loss, nets.train->rehearse());
    kept->restore();
    finite = std::isfinite(loss);
  }
  read_from(iteration);
  return finite;
}

// The loss of an iteration does not tell what its update has made of the weights; that of the same
// batch once more does. Losses that were not finite changed nothing: then the batches that follow
// tell, as many of which in a row as end a training show that it has diverged.
Result<void> Solver::Impl::refuse_diverged() {
  if (iteration == first_iteration || iteration == sound_iteration) return {};
  const bool updated = non_finite_in_a_row == 0;
  const int batches = updated ? 1 : std::max(1, non_finite_max - non_finite_in_a_row);
  SPEEDO_ASSIGN(const bool sound, gives_finite_loss(updated ? iteration - 1 : iteration, batches));
  if (sound) {
    sound_iteration = iteration;
    return {};
  }
  return diverged(
      fmt::format("training has diverged: the loss of the weights of iteration {} is not finite, "
                  "so no snapshot of them is written",
                  iteration));
}

Result<void> Solver::Impl::snapshot() {
  if (!hooks.snapshot || last_snapshot == iteration) return {};
  const Arena& weights = std::as_const(*nets.train).weights();
  if (!nets.train->backend().all_finite(weights.size(), weights.data())) {
    return diverged(fmt::format(
        "iteration {}: the weights are not finite, so no snapshot of them is written", iteration));
  }
  SPEEDO_TRY(refuse_diverged());
  caffe::NetParameter model;
  nets.train->to_proto(model, param.snapshot_diff());
  caffe::SolverState state;
  rule->save(state, iteration);
  SPEEDO_TRY(hooks.snapshot(iteration, model, state));
  last_snapshot = iteration;
  return {};
}

Result<void> Solver::Impl::poll() {
  if (!hooks.poll) return {};
  const Action action = hooks.poll();
  if (action != Action::kContinue) SPEEDO_TRY(settle());
  if (action == Action::kStop || action == Action::kSnapshotAndStop) stopped = true;
  if (action != Action::kSnapshot && action != Action::kSnapshotAndStop) return {};
  if (in_last_test || (action == Action::kSnapshot && iteration == last_iteration)) {
    snapshot_wanted = true;
    return {};
  }
  return snapshot();
}

Result<void> Solver::Impl::test_if_due() {
  if (!due(iteration, param.test_interval())) return {};
  if (iteration == 0 && !param.test_initialization()) return {};
  SPEEDO_TRY(test_all());
  return {};
}

Result<std::vector<TestScores>> Solver::Impl::test_all() {
  std::vector<TestScores> all(nets.tests.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!in_last_test) SPEEDO_INFO("Iteration {}, Testing net (#{})", iteration, i);
    SPEEDO_ASSIGN(const bool complete, test(i, all[i]));
    if (!complete) return std::vector<TestScores>{};
    if (!in_last_test) log_test(all[i]);
  }
  last_scores = all;
  tested_iteration = iteration;
  return all;
}

// False: poll asked to stop before the last pass.
Result<bool> Solver::Impl::test(std::size_t index, TestScores& scores) {
  Result<void> polled;
  const auto stop = [&] {
    polled = poll();
    return stopped || !polled;
  };
  const int passes = param.test_iter(static_cast<int>(index));
  std::function<Result<float>(Net&)> forward;
  if (param.debug_info()) forward = forward_with_debug_info;
  SPEEDO_ASSIGN(scores, run_test(*nets.tests[index], passes, stop, forward));
  SPEEDO_TRY(std::move(polled));
  if (scores.passes == passes) return true;
  SPEEDO_INFO("Test interrupted.");
  return false;
}

void Solver::Impl::log_test(const TestScores& scores) const {
  if (param.test_compute_loss()) SPEEDO_INFO("Test loss: {}", loss_text(scores));
  log_outputs("Test", scores.scores);
}

bool Solver::Impl::last_test_due() const {
  return !stopped &&
         (due(iteration, param.test_interval()) || (test_at_end && !nets.tests.empty()));
}

// The last test says whether the weights are worth a snapshot, so it comes before, and its lines
// where Caffe has them. Statistics that its passes change are put back, as Caffe's snapshot is from
// before the test.
Result<std::vector<TestScores>> Solver::Impl::test_last() {
  if (!last_test_due()) return std::vector<TestScores>{};
  kept->keep();
  in_last_test = true;
  auto tested = test_all();
  in_last_test = false;
  kept->restore();
  return tested;
}

// A test that failed, or was broken off, says nothing against the weights.
Result<void> Solver::Impl::write_last_snapshot(const Result<std::vector<TestScores>>& tested) {
  if (tested && !std::all_of(tested->begin(), tested->end(), has_finite_losses)) {
    return Error{ErrorCode::kNotFinite,
                 fmt::format("training has diverged: the test loss of iteration {} is not finite, "
                             "so no snapshot of it is written; lower base_lr, set clip_gradients "
                             "or check the data",
                             iteration)};
  }
  const bool is_due = due(iteration, param.snapshot());
  const bool writes = is_due ? iteration > first_iteration : param.snapshot_after_train();
  return writes || snapshot_wanted ? snapshot() : Result<void>();
}

Result<void> Solver::Impl::show_last_loss() {
  SPEEDO_ASSIGN(const float loss, nets.train->forward());
  smoothed.add(loss);
  SPEEDO_INFO("Iteration {}, loss = {}", iteration, number_text(smoothed.value()));
  if (std::isfinite(loss)) return {};
  return diverged(
      fmt::format("iteration {}: the loss after the last update is not finite", iteration));
}

// What follows the last iteration: snapshot, one more forward pass for the loss, test.
Result<void> Solver::Impl::finish() {
  SPEEDO_TRY(refuse_diverged());
  auto tested = test_last();
  SPEEDO_TRY(write_last_snapshot(tested));
  if (non_finite_in_a_row > 0) return data_at_fault(iteration, non_finite_in_a_row);
  if (stopped) {
    SPEEDO_INFO("Optimization stopped early.");
    return {};
  }
  if (display_due()) SPEEDO_TRY(show_last_loss());
  if (!tested) return std::move(tested).error();
  for (std::size_t i = 0; i < tested->size(); ++i) {
    SPEEDO_INFO("Iteration {}, Testing net (#{})", iteration, i);
    log_test((*tested)[i]);
  }
  SPEEDO_INFO("Optimization Done.");
  return {};
}

Result<Accumulated> run_passes(Net& net, int iter_size) {
  SPEEDO_ASSERT(iter_size > 0);
  net.clear_gradients();
  float loss = 0.0F;
  for (int pass = 0; pass < iter_size; ++pass) {
    SPEEDO_ASSIGN(const float pass_loss, net.forward());
    loss += pass_loss;
    net.backward();
  }
  net.unscale_gradients();
  return Accumulated{loss / static_cast<float>(iter_size), net.has_finite_gradients()};
}

Result<float> accumulate_gradients(Net& net, int iter_size) {
  SPEEDO_ASSIGN(const Accumulated passes, run_passes(net, iter_size));
  return passes.has_finite_gradients ? passes.loss : std::numeric_limits<float>::quiet_NaN();
}

Solver::Solver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Solver::~Solver() = default;

Result<std::unique_ptr<Solver>> Solver::create(const caffe::SolverParameter& solver,
                                               const SolverOptions& options, Hooks hooks) {
  SPEEDO_ASSERT(options.backend != nullptr);
  auto impl = std::make_unique<Impl>();
  impl->param = solver;
  impl->hooks = std::move(hooks);
  impl->feeds = options.feeds;
  impl->test_at_end = options.test_at_end;
  impl->non_finite_max = options.non_finite_max;
  caffe::SolverParameter shown = solver;
  show_names(shown);
  SPEEDO_INFO_LINES("Initializing solver from parameters: \n{}", message_text(shown));
  SPEEDO_TRY(check_intervals(solver));
  settle_seed(impl->param);
  SPEEDO_ASSIGN(impl->nets, create_nets(impl->param, options));
  SPEEDO_ASSIGN(impl->rule,
                UpdateRule::create(impl->param, impl->nets.train->layout(), *options.backend));
  impl->kept = std::make_unique<KeptValues>(*impl->nets.train, KeptValues::Kind::kAll);
  if (options.backend->has_narrow_range()) impl->scale.emplace();
  SPEEDO_ASSIGN(impl->quiet, QuietSteps::create({.net = *impl->nets.train,
                                                 .rule = *impl->rule,
                                                 .kept = *impl->kept,
                                                 .passes = impl->param.iter_size()}));
  SPEEDO_INFO("Solver scaffolding done.");
  impl->start(0);
  return std::unique_ptr<Solver>(new Solver(std::move(impl)));
}

Net& Solver::net() { return *impl_->nets.train; }
const std::vector<std::unique_ptr<Net>>& Solver::test_nets() const { return impl_->nets.tests; }
std::int64_t Solver::iteration() const { return impl_->iteration; }
bool Solver::stopped() const { return impl_->stopped; }
Solver::Times Solver::times() const { return impl_->times; }
float Solver::smoothed_loss() const { return impl_->smoothed.value(); }
const std::vector<TestScores>& Solver::last_scores() const { return impl_->last_scores; }
std::int64_t Solver::tested_iteration() const { return impl_->tested_iteration; }

Result<void> Solver::restore(const caffe::SolverState& state, const caffe::NetParameter& model) {
  SPEEDO_TRY(impl_->nets.train->copy_weights_from(model));
  SPEEDO_INFO("SGDSolver: restoring history");
  SPEEDO_ASSIGN(impl_->iteration, impl_->rule->load(state));
  return {};
}

void Solver::read_from_step(std::uint64_t step) {
  impl_->steps_ahead = step - static_cast<std::uint64_t>(impl_->iteration);
}

Result<void> Solver::step(std::int64_t count) {
  impl_->start(impl_->iteration);
  return impl_->run_until(impl_->iteration + count);
}

Result<void> Solver::solve() {
  SPEEDO_INFO("Solving {}", impl_->nets.train->name());
  SPEEDO_INFO("Learning Rate Policy: {}", impl_->param.lr_policy());
  impl_->last_iteration = impl_->param.max_iter();
  Result<void> trained = step(impl_->last_iteration - impl_->iteration);
  impl_->last_iteration = -1;
  SPEEDO_TRY(std::move(trained));
  SPEEDO_TRY(impl_->finish());
  for (const auto& test : impl_->nets.tests) SPEEDO_TRY(test->finish());
  return impl_->nets.train->finish();
}

Result<std::vector<TestScores>> Solver::test_all() {
  impl_->stopped = false;
  return impl_->test_all();
}

}  // namespace speedo
