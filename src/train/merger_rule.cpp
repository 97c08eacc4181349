#include "train/merger_rule.hpp"

#include <speedo/base/assert.hpp>

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
    backend.upload(rule->rule_->histories()[i]->data(), histories[i]);
  }
  backend.synchronize();
  return rule;
}

Result<void> MergerRule::allocate(std::span<const float> weights) {
  const auto count = static_cast<std::int64_t>(weights.size());
  SPEEDO_ASSIGN(weights_, Arena::create(backend_, count));
  SPEEDO_ASSIGN(gradient_, Arena::create(backend_, count));
  for (const Arena* history : rule_->histories()) {
    SPEEDO_ASSERT(history->size() == count);
    SPEEDO_ASSIGN(Arena copy, Arena::create(backend_, count));
    saved_.push_back(std::move(copy));
  }
  backend_.upload(weights_.data(), weights);
  return {};
}

void MergerRule::stage(std::size_t offset, std::span<const float> gradient) {
  backend_.upload(gradient_.data() + offset, gradient);
  const std::vector<Arena*> histories = rule_->histories();
  for (std::size_t i = 0; i < histories.size(); ++i) {
    backend_.copy(static_cast<std::int64_t>(gradient.size()), histories[i]->data() + offset,
                  saved_[i].data() + offset);
  }
  backend_.synchronize();
}

void MergerRule::apply(std::int64_t iteration, float rate_scale) {
  rule_->scale_rate(rate_scale);
  rule_->update(iteration, weights_.data(), gradient_.data());
}

void MergerRule::read_weights(std::size_t offset, std::span<float> target) {
  backend_.download(target, weights_.data() + offset);
}

void MergerRule::take_back(std::span<const float> weights) {
  const std::vector<Arena*> histories = rule_->histories();
  for (std::size_t i = 0; i < histories.size(); ++i) {
    backend_.copy(histories[i]->size(), saved_[i].data(), histories[i]->data());
  }
  backend_.upload(weights_.data(), weights);
  backend_.synchronize();
}

void MergerRule::read_history(std::size_t index, std::span<float> target) {
  backend_.download(target, rule_->histories()[index]->data());
}

}  // namespace speedo
