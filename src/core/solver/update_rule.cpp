#include <speedo/core/update_rule.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "base/log.hpp"
#include "caffe.pb.h"
#include "core/solver/adaptive_rule.hpp"
#include "core/blob_proto.hpp"
#include "core/solver/nesterov_rule.hpp"
#include "core/solver/sgd_rule.hpp"

namespace speedo {
namespace {

using Make = Result<std::unique_ptr<UpdateRule>> (*)(const caffe::SolverParameter&,
                                                     const ParameterLayout&, Backend&);
struct Entry {
  std::string_view type;
  Make make;
  std::size_t histories;
  unsigned squares = 0;  // bit i: history i is of squares
  Result<void> (*check)(const caffe::SolverParameter&) = nullptr;  // of its own fields
};
constexpr unsigned kFirst = 1U, kSecond = 2U;
// A rule is one file with a create() and one line here.
constexpr std::array kRules{
    Entry{"SGD", &SgdRule::create, 1},
    Entry{"Nesterov", &NesterovRule::create, 1},
    Entry{"AdaGrad", &AdaptiveRule::create, 1, kFirst, &AdaptiveRule::check_fields},
    Entry{"RMSProp", &AdaptiveRule::create, 1, kFirst, &AdaptiveRule::check_fields},
    Entry{"AdaDelta", &AdaptiveRule::create, 2, kFirst | kSecond, &AdaptiveRule::check_fields},
    Entry{"Adam", &AdaptiveRule::create, 2, kSecond, &AdaptiveRule::check_fields},
};
static_assert(std::ranges::all_of(kRules, [](const Entry& rule) {
  return rule.histories <= UpdateRule::kHistoriesMax;
}));

Result<void> check_rule_fields(const caffe::SolverParameter& solver) {
  SPEEDO_TRY(learning_rate(solver, 0));
  const std::string& regularization = solver.regularization_type();
  if (solver.weight_decay() != 0.0F && regularization != "L1" && regularization != "L2") {
    return config_error(fmt::format("solver: unknown regularization_type \"{}\"; use L1 or L2",
                              regularization));
  }
  if (solver.iter_size() < 1) {
    return config_error(fmt::format("solver: iter_size is {}; it must be 1 or more",
                              solver.iter_size()));
  }
  const std::pair<const char*, float> numbers[] = {{"base_lr", solver.base_lr()},
                                                   {"momentum", solver.momentum()},
                                                   {"weight_decay", solver.weight_decay()},
                                                   {"clip_gradients", solver.clip_gradients()}};
  for (const auto& [name, value] : numbers) {
    if (!std::isfinite(value)) {
      return config_error(fmt::format("solver: {} is {}; it must be a finite number", name, value));
    }
  }
  return {};
}

Result<const Entry*> find_rule(const caffe::SolverParameter& solver) {
  SPEEDO_TRY(check_rule_fields(solver));
  std::string known;
  for (const Entry& entry : kRules) {
    known.append(known.empty() ? "" : ", ").append(entry.type);
    if (entry.type != solver.type()) continue;
    if (entry.check != nullptr) SPEEDO_TRY(entry.check(solver));
    return &entry;
  }
  return config_error(fmt::format("solver: unknown type \"{}\"; use {}", solver.type(), known));
}

Result<std::vector<float>> history_values(const caffe::BlobProto& blob,
                                          const ParameterSlot& slot) {
  std::vector<float> values(static_cast<std::size_t>(slot.count()));
  if (fits(blob, slot.shape) && read_values(blob, values)) return values;
  const Result<Shape> shape = shape_of(blob);
  return Error{ErrorCode::kMismatch,
               fmt::format("solver state: the history of parameter {} of layer '{}' is {} with {} "
                           "values, but the net has {}; use the state of this net",
                           slot.index, slot.layer, shape ? to_string(*shape) : "of no valid shape",
                           blob.data_size() + blob.double_data_size(), to_string(slot.shape))};
}

// Whether values are squares, but for what rounding may have done to them. Those of another solver
// type, momentum above all, are about as often negative as not.
bool are_squares(std::span<const std::vector<float>> blobs) {
  constexpr double kNegativePartMax = 0.25;
  double negative = 0.0, all = 0.0;
  for (const std::vector<float>& blob : blobs) {
    for (const float value : blob) {
      if (value < 0.0F) negative -= double{value};
      all += std::fabs(double{value});
    }
  }
  return !(negative > kNegativePartMax * all);
}

Result<void> check_squares(const caffe::SolverParameter& solver,
                           std::span<const std::vector<float>> blobs) {
  SPEEDO_ASSIGN(const Entry* const entry, find_rule(solver));
  const std::size_t slots = blobs.size() / entry->histories;
  for (std::size_t i = 0; i < entry->histories; ++i) {
    const bool is_sound = ((entry->squares >> i) & 1U) == 0 ||
                          are_squares(blobs.subspan(i * slots, slots));
    if (is_sound) continue;
    return Error{ErrorCode::kMismatch,
                 fmt::format("solver state: history {} of a solver of type \"{}\" is of squares, "
                             "but this one is negative: it is the state of another solver type; "
                             "use that type, or begin new histories with --weights",
                             i + 1, solver.type())};
  }
  return {};
}

// Caffe would go on with the state's step, whatever the step values say now.
void warn_of_other_steps(const caffe::SolverState& state, const caffe::SolverParameter& solver) {
  if (solver.lr_policy() != "multistep" || state.iter() == 0) return;
  const std::int32_t steps = current_step(solver, state.iter() - 1);
  if (state.current_step() == steps) return;
  SPEEDO_WARN("the solver state has taken {} steps of the learning rate by iteration {}, by this "
              "solver's stepvalues it is {}: the rate follows the solver",
              state.current_step(), state.iter(), steps);
}

}  // namespace

Result<std::unique_ptr<UpdateRule>> UpdateRule::create(const caffe::SolverParameter& solver,
                                                       const ParameterLayout& layout,
                                                       Backend& backend) {
  SPEEDO_ASSIGN(const Entry* const entry, find_rule(solver));
  SPEEDO_ASSIGN(std::unique_ptr<UpdateRule> rule, entry->make(solver, layout, backend));
  SPEEDO_ASSERT(rule->histories().size() == entry->histories);
  return rule;
}

Result<std::size_t> UpdateRule::history_count(const caffe::SolverParameter& solver) {
  SPEEDO_ASSIGN(const Entry* const entry, find_rule(solver));
  return entry->histories;
}

// Both of the first two keep Caffe's momentum.
bool UpdateRule::have_same_histories(std::string_view type, std::string_view other) {
  const auto is_momentum = [](std::string_view one) { return one == "SGD" || one == "Nesterov"; };
  return type == other || (is_momentum(type) && is_momentum(other));
}

UpdateRule::UpdateRule(const caffe::SolverParameter& solver, const ParameterLayout& layout,
                       Backend& backend)
    : solver_(std::make_unique<caffe::SolverParameter>(solver)),
      layout_(layout),
      backend_(backend) {}

UpdateRule::~UpdateRule() = default;

bool UpdateRule::needs_whole_gradient() const { return solver_->clip_gradients() >= 0; }

// Visits the parts of them that are in the bucket.
template <class Visit>
void UpdateRule::for_each_statistic(const Bucket& bucket, const Visit& visit) const {
  for (const ParameterSlot& slot : layout_.slots()) {
    const Bucket part = common_part(bucket, {slot.offset, slot.count()});
    if (part.count > 0 && slot.is_statistic) visit(part);
  }
}

void UpdateRule::compute_update(std::int64_t iteration, const Bucket& bucket,
                                const float* weights, float* gradients) {
  const SgdStep step = common_step(gradient_scale(bucket, gradients));
  compute_parts(step, parts_of(bucket, rate(iteration)), weights, gradients);
}

void UpdateRule::compute_delta(std::int64_t iteration, const Bucket& bucket,
                               const float* weights, float* gradients) {
  SgdStep step = common_step(gradient_scale(bucket, gradients));
  step.sign = -1.0F;
  compute_parts(step, parts_of(bucket, rate(iteration)), weights, gradients);
  for_each_statistic(bucket, [&](const Bucket& part) {
    float* const update = gradients + part.offset;
    backend_.axpby(part.count, -1.0F, update, 0.0F, update);
  });
}

void UpdateRule::update(std::int64_t iteration, const Bucket& bucket, float* weights,
                        float* gradients) {
  const SgdStep step = common_step(gradient_scale(bucket, gradients));
  update_parts(step, parts_of(bucket, rate(iteration)), weights, gradients);
  for_each_statistic(bucket, [&](const Bucket& part) {
    backend_.axpby(part.count, -1.0F, gradients + part.offset, 1.0F, weights + part.offset);
  });
}

void UpdateRule::update_guarded(const float* guard, float* weights, float* gradients) {
  SPEEDO_ASSERT(can_be_guarded() && !needs_whole_gradient());
  SgdStep step = common_step(1.0F / static_cast<float>(solver_->iter_size()));
  step.guard = guard;
  update_parts(step, parts_of(whole(), 1.0F), weights, gradients);
}

void UpdateRule::update_parts(const SgdStep& step, Parts parts, float* weights,
                              float* gradients) {
  compute_parts(step, parts, weights, gradients);
  for (const UpdateRange& part : parts) {
    backend_.axpby(part.count, -1.0F, gradients + part.first, 1.0F, weights + part.first);
  }
}

float UpdateRule::rate(std::int64_t iteration) const {
  const Result<float> rate = learning_rate(*solver_, iteration);
  SPEEDO_ASSERT(rate.has_value());
  return *rate * rate_scale_ * rate_correction(updates_held_.value_or(iteration));
}

void UpdateRule::scale_rate(float scale) {
  SPEEDO_ASSERT(std::isfinite(scale) && scale >= 0.0F);
  rate_scale_ = scale;
}

// Of all that is a gradient: the places of statistics hold something else.
double UpdateRule::squared_norm(const float* gradients) const {
  double sum = 0.0;
  std::int64_t begin = 0;
  for (const ParameterSlot& slot : layout_.slots()) {
    if (!slot.is_statistic) continue;
    sum += backend_.dot(slot.offset - begin, gradients + begin, gradients + begin);
    begin = slot.offset + slot.count();
  }
  return sum + backend_.dot(layout_.element_count() - begin, gradients + begin, gradients + begin);
}

float UpdateRule::gradient_scale(const Bucket& bucket, const float* gradients) const {
  SPEEDO_ASSERT(bucket == whole() || !needs_whole_gradient());
  const float mean = 1.0F / static_cast<float>(solver_->iter_size());
  if (!needs_whole_gradient()) return mean;
  const double limit = solver_->clip_gradients();
  const double norm = std::sqrt(squared_norm(gradients));
  if (!(norm > limit)) return mean;
  const double factor = limit / norm;
  SPEEDO_INFO(
      "Gradient clipping: scaling down gradients (L2 norm {:g} > {:g}) by scale factor {:g}", norm,
      limit, factor);
  return static_cast<float>(factor) * mean;
}

SgdStep UpdateRule::common_step(float gradient_scale) const {
  return {.momentum = solver_->momentum(), .scale = gradient_scale};
}

UpdateRule::Parts UpdateRule::parts_of(const Bucket& bucket, float rate) {
  const bool is_l1 = solver_->regularization_type() == "L1";
  parts_.clear();
  for (const ParameterSlot& slot : layout_.slots()) {
    const Bucket part = common_part(bucket, {slot.offset, slot.count()});
    if (part.count == 0 || slot.is_statistic) continue;
    const float decay = solver_->weight_decay() * slot.decay_mult;
    parts_.push_back({.first = part.offset,
                      .count = part.count,
                      .rate = rate * slot.lr_mult,
                      .l2 = is_l1 ? 0.0F : decay,
                      .l1 = is_l1 ? decay : 0.0F});
  }
  return parts_;
}

void UpdateRule::save(caffe::SolverState& state, std::int64_t iteration) {
  SPEEDO_ASSERT(iteration >= 0);
  state.set_iter(static_cast<std::int32_t>(iteration));
  // Caffe's counter was last looked at for the update before this one.
  state.set_current_step(iteration > 0 ? current_step(*solver_, iteration - 1) : 0);
  state.clear_history();
  for (const Arena* arena : histories()) {
    for (const ParameterSlot& slot : layout_.slots()) {
      const std::span<float> values = set_shape_and_data(slot.shape, *state.add_history());
      backend_.device().download(values, arena->data() + slot.offset);
    }
  }
}

Result<std::int64_t> UpdateRule::load(const caffe::SolverState& state) {
  const std::vector<Arena*> arenas = histories();
  const std::span<const ParameterSlot> slots = layout_.slots();
  const std::size_t expected = arenas.size() * slots.size();
  if (state.iter() < 0) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("solver state: iteration {} is negative", state.iter())};
  }
  if (static_cast<std::size_t>(state.history_size()) != expected) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("solver state: {} history blobs, but a {} solver of this net has {}; "
                             "use the state of this net and solver type",
                             state.history_size(), solver_->type(), expected)};
  }
  std::vector<std::vector<float>> values(expected);
  for (std::size_t i = 0; i < expected; ++i) {
    SPEEDO_ASSIGN(values[i], history_values(state.history(static_cast<int>(i)),
                                            slots[i % slots.size()]));
  }
  SPEEDO_TRY(check_squares(*solver_, values));
  warn_of_other_steps(state, *solver_);
  for (std::size_t i = 0; i < expected; ++i) {
    backend_.device().upload(arenas[i / slots.size()]->data() + slots[i % slots.size()].offset,
                             values[i]);
  }
  return state.iter();
}

}  // namespace speedo
