#include "train/replicas/merger_replica.hpp"

#include <string>
#include <utility>

#include <speedo/base/assert.hpp>

#include "train/replicas/step_merge.hpp"

namespace speedo {

MergerReplica::MergerReplica(const ParameterLayout& layout, std::span<const FactorShape> factors,
                             std::size_t parts, Backend& backend)
    : layout_(layout),
      contribution_(layout, factors, parts),
      backend_(backend),
      gradient_(backend) {}

std::unique_ptr<ChunkMerge> MergerReplica::begin(const MergeJob& job, std::size_t contributions,
                                                 RecordStore& store, RecordInfo info) {
  const std::span<float> values = room({.iteration = job.iteration,
                                        .rate_scale = job.lr_scale,
                                        .contributions = contributions})
                                      .values;
  info.element_count = values.size();
  return merge_step({.step = *step_,
                     .state = encode(header_),
                     .values = values,
                     .writer = store.write(step_key(info.term), info)});
}

StepParts::StepRoom MergerReplica::room(const StepHeader& header) {
  SPEEDO_ASSERT(!pending_);
  const auto contributions = static_cast<std::size_t>(header.contributions);
  const auto parts = static_cast<std::size_t>(header.parts);
  if (!step_ || !step_->is_of(contributions, parts)) {
    step_.emplace(contribution_, contributions, parts);
  }
  header_ = header;
  values_.resize(step_->count());
  return {values_, *step_};
}

void MergerReplica::merged() {
  SPEEDO_ASSERT(step_.has_value() && !pending_);
  pending_ = true;
}

Result<void> MergerReplica::apply(MergerRule& rule, std::span<const float> weights,
                                  std::span<float> next) {
  SPEEDO_ASSERT(pending_);
  const Bucket whole{0, layout_.element_count()};
  const MergerRule::Step step{.iteration = static_cast<std::int64_t>(header_.iteration),
                              .rate_scale = header_.rate_scale,
                              .weights = weights,
                              .next = next};
  SPEEDO_TRY(rule.stage_formed(step, whole, [&](float* gradients) {
    return gradient_.form(*step_, whole, values_, gradients);
  }));
  rule.begin(step, whole);
  const bool is_finite = rule.read_weights(step, whole);
  backend_.device().synchronize();
  if (!is_finite) {
    rule.take_back(weights);
    return Error{ErrorCode::kNotFinite,
                 "the update of iteration " + std::to_string(header_.iteration) +
                     " makes weights that are NaN or infinite: lower the learning rate"};
  }
  rule.keep();
  pending_ = false;
  return {};
}

}  // namespace speedo
