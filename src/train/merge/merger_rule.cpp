#include "train/merge/merger_rule.hpp"

#include <limits>

#include <speedo/base/assert.hpp>
#include <speedo/train/merge.hpp>

namespace speedo {

MergerRule::MergerRule(Backend& backend, std::unique_ptr<UpdateRule> rule)
    : backend_(backend), rule_(std::move(rule)) {}

Result<std::unique_ptr<MergerRule>> MergerRule::create(const caffe::SolverParameter& solver,
                                                       const ParameterLayout& layout,
                                                       Backend& backend,
                                                       std::span<const float> weights,
                                                       const Histories& histories) {
  SPEEDO_ASSIGN(std::unique_ptr<UpdateRule> update, UpdateRule::create(solver, layout, backend));
  std::unique_ptr<MergerRule> rule(new MergerRule(backend, std::move(update)));
  SPEEDO_TRY(rule->allocate(weights));
  SPEEDO_ASSERT(histories.empty() || histories.size() == rule->history_count());
  for (std::size_t i = 0; i < histories.size(); ++i) {
    backend.device().upload(rule->rule_->histories()[i]->data(), histories[i]);
  }
  return rule;
}

Result<void> MergerRule::allocate(std::span<const float> weights) {
  const auto count = static_cast<std::int64_t>(weights.size());
  SPEEDO_ASSIGN(gradient_, Arena::create(backend_, count));
  for (const Arena* history : rule_->histories()) {
    SPEEDO_ASSERT(history->size() == count);
    SPEEDO_ASSIGN(Arena copy, Arena::create(backend_, count));
    saved_.push_back(std::move(copy));
  }
  if (is_direct()) return {};
  host_gradient_.resize(weights.size());
  SPEEDO_ASSIGN(weights_, Arena::create(backend_, count));
  backend_.device().upload(weights_.data(), weights);
  return {};
}

std::int64_t MergerRule::block_length() const {
  constexpr std::int64_t kCached = 16384;  // 320 KiB of gradient, history, its copy and weights
  return is_direct() ? kCached : std::numeric_limits<std::int64_t>::max();
}

std::span<float> MergerRule::gradient(const Bucket& part) {
  float* const first = is_direct() ? gradient_.data() : host_gradient_.data();
  return {first + part.offset, static_cast<std::size_t>(part.count)};
}

void MergerRule::stage(const Bucket& part) {
  if (!is_direct()) backend_.device().upload(gradient_.data() + part.offset, gradient(part));
  remember(part);
}

Result<void> MergerRule::stage_formed(
    const Bucket& part, const std::function<Result<void>(float* gradients)>& form) {
  SPEEDO_TRY(form(gradient_.data()));
  remember(part);
  return {};
}

void MergerRule::remember(const Bucket& part) {
  const std::vector<Arena*> histories = rule_->histories();
  for (std::size_t i = 0; i < histories.size(); ++i) {
    backend_.copy(part.count, histories[i]->data() + part.offset, saved_[i].data() + part.offset);
  }
  if (!staged_.empty() && staged_.back().end() == part.offset) {
    staged_.back().count += part.count;
  } else {
    staged_.push_back(part);
  }
}

void MergerRule::begin(std::int64_t iteration, float rate_scale, const Bucket& bucket,
                       std::span<const float> weights) {
  rule_->scale_rate(rate_scale);
  if (is_direct()) {
    rule_->compute_delta(iteration, bucket, weights.data(), gradient_.data());
  } else {
    rule_->update(iteration, bucket, weights_.data(), gradient_.data());
  }
}

bool MergerRule::read_weights(const Bucket& part, std::span<const float> weights,
                              std::span<float> next) {
  if (is_direct()) {
    const auto offset = static_cast<std::size_t>(part.offset);
    return merge_add(weights.subspan(offset, next.size()), gradient(part), 1.0F, next);
  }
  backend_.device().download(next, weights_.data() + part.offset);
  return all_finite(next);
}

void MergerRule::take_back(std::span<const float> weights) {
  const std::vector<Arena*> histories = rule_->histories();
  for (const Bucket& bucket : staged_) {
    for (std::size_t i = 0; i < histories.size(); ++i) {
      backend_.copy(bucket.count, saved_[i].data() + bucket.offset,
                    histories[i]->data() + bucket.offset);
    }
    if (is_direct()) continue;
    backend_.device().upload(weights_.data() + bucket.offset,
                             weights.subspan(static_cast<std::size_t>(bucket.offset),
                                             static_cast<std::size_t>(bucket.count)));
  }
  staged_.clear();
}

void MergerRule::read_history(std::size_t index, std::span<float> target) {
  backend_.device().download(target, rule_->histories()[index]->data());
  for (const Bucket& bucket : staged_) {
    backend_.device().download(target.subspan(static_cast<std::size_t>(bucket.offset),
                                              static_cast<std::size_t>(bucket.count)),
                               saved_[index].data() + bucket.offset);
  }
}

}  // namespace speedo
