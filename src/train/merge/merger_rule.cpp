#include "train/merge/merger_rule.hpp"

#include <limits>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/train/merge.hpp>

namespace speedo {
namespace {

template <class T>
std::span<T> part_of(std::span<T> all, const Bucket& part) {
  return all.subspan(static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.count));
}

}  // namespace

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
    backend.device().upload(rule->kept_[i].data(), histories[i]);
  }
  return rule;
}

Result<void> MergerRule::allocate(std::span<const float> weights) {
  const auto count = static_cast<std::int64_t>(weights.size());
  for (const Arena* history : rule_->histories()) {
    SPEEDO_ASSERT(history->size() == count);
    SPEEDO_ASSIGN(Arena kept, Arena::create(backend_, count));
    kept_.push_back(std::move(kept));
  }
  if (is_direct()) return {};
  for (Arena* arena : {&gradient_, &weights_}) {
    SPEEDO_ASSIGN(*arena, Arena::create(backend_, count));
  }
  backend_.device().upload(weights_.data(), weights);
  return {};
}

std::int64_t MergerRule::block_length() const {
  constexpr std::int64_t kCached = 16384;  // 256 KiB of histories, weights and what is made of them
  return is_direct() ? kCached : std::numeric_limits<std::int64_t>::max();
}

void MergerRule::stage(const Step& step, const Bucket& part) {
  if (!is_direct()) {
    backend_.device().upload(gradient_.data() + part.offset, part_of(step.next, part));
  }
  copy_histories(part);
}

Result<void> MergerRule::stage_formed(const Step& step, const Bucket& part,
                                      const std::function<Result<void>(float* gradients)>& form) {
  SPEEDO_TRY(form(gradients(step)));
  copy_histories(part);
  return {};
}

void MergerRule::copy_histories(const Bucket& part) {
  const std::vector<Arena*> histories = rule_->histories();
  for (std::size_t i = 0; i < histories.size(); ++i) {
    backend_.copy(part.count, kept_[i].data() + part.offset, histories[i]->data() + part.offset);
  }
  staged_ += part.count;
}

void MergerRule::begin(const Step& step, const Bucket& bucket) {
  rule_->scale_rate(step.rate_scale);
  if (is_direct()) {
    rule_->compute_delta(step.iteration, bucket, step.weights.data(), step.next.data());
  } else {
    rule_->update(step.iteration, bucket, weights_.data(), gradient_.data());
  }
}

bool MergerRule::read_weights(const Step& step, const Bucket& part) {
  const std::span<float> next = part_of(step.next, part);
  if (is_direct()) return merge_add(part_of(step.weights, part), next, 1.0F, next);
  backend_.device().download(next, weights_.data() + part.offset);
  return all_finite(next);
}

void MergerRule::keep() {
  const std::vector<Arena*> histories = rule_->histories();
  SPEEDO_ASSERT(histories.empty() || staged_ == histories[0]->size());
  for (std::size_t i = 0; i < histories.size(); ++i) std::swap(*histories[i], kept_[i]);
  staged_ = 0;
}

void MergerRule::take_back(std::span<const float> weights) {
  if (staged_ > 0 && !is_direct()) backend_.device().upload(weights_.data(), weights);
  staged_ = 0;
}

void MergerRule::read_history(std::size_t index, std::span<float> target) {
  backend_.device().download(target, kept_[index].data());
}

}  // namespace speedo
