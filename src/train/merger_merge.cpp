// One merge: the contributions are read, merged and written chunk by chunk (MergerPass); the
// manifest goes last; then the next weights become the weights. A contribution at fault ends the
// pass; the merge begins again without it, so nothing of it remains. A failed merge leaves all as
// it was.

#include "train/merger_engine.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/train/merge.hpp>

#include "base/log.hpp"
#include "store/chunk_range.hpp"

namespace speedo {
namespace {

using MergedParts = MergerPass::Parts;
using Fault = std::optional<std::size_t>;

// parts[0] = sum of weight x part, in order.
Fault sum_parts(MergedParts parts, std::span<const float> scales) {
  if (scales[0] != 1.0F) {
    if (!merge_scale(scales[0], parts[0])) return 0;
  } else if (!all_finite(parts[0])) {
    return 0;
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool finite = scales[i] == 1.0F ? merge_accumulate(parts[i], parts[0])
                                          : merge_add(parts[0], parts[i], scales[i], parts[0]);
    if (!finite) return i;
  }
  return std::nullopt;
}

// A contribution that overflows only in the sum is as bad as one that is not finite: of several it
// is not known which one, so the first is named, and the merge tried again without it.
bool add_scaled(std::span<const float> weights, std::span<const float> delta, float scale,
                float skip, std::span<float> target) {
  return skip > 0.0F ? merge_add_large(weights, delta, scale, skip, target)
                     : merge_add(weights, delta, scale, target);
}

}  // namespace

// Whether a record is what a worker was told to contribute. Error: kMismatch.
Result<void> MergerEngine::check(const RecordInfo& info, const Contribution& contribution) const {
  if (info.model != model_ || info.element_count != record_.size()) {
    return Error{ErrorCode::kMismatch, "it is of another model or stage"};
  }
  if (info.worker != contribution.worker.value) {
    return Error{ErrorCode::kMismatch, "it is of worker " + std::to_string(info.worker)};
  }
  if (info.version != contribution.run.value) {
    return Error{ErrorCode::kMismatch, "it is of run " + std::to_string(info.version)};
  }
  return {};
}

Result<MergerEngine::Party> MergerEngine::open(const std::vector<Contribution>& contributions,
                                               std::vector<WorkerId>& rejected) {
  std::vector<std::string> keys;
  for (const Contribution& contribution : contributions) {
    keys.push_back(contribution_key(config_.epoch, contribution.worker.value));
  }
  auto readers = store_->read_all(keys);
  Party party;
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    const Contribution& contribution = contributions[i];
    const Result<void> fit = readers[i] ? check((*readers[i])->info(), contribution)
                                        : Result<void>(readers[i].error());
    if (fit) {
      party.contributions.push_back(contribution);
      party.readers.push_back(std::move(*readers[i]));
      continue;
    }
    const Error& error = fit.error();
    const bool its_fault = error.code == ErrorCode::kNotFound ||
                           error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kMismatch;
    if (!its_fault) return error;
    SPEEDO_WARN("contribution of worker {}, run {}, is not merged: {}", contribution.worker.value,
                contribution.run.value, error.message);
    rejected.push_back(contribution.worker);
  }
  return party;
}

Result<MergeResult> MergerEngine::merge(const master_command::StartMerge& job) {
  SPEEDO_ASSERT(stage_ == job.stage);
  if (superseded_) return *superseded_;
  auto result = merge_party(job);
  SPEEDO_TRY(note(result ? Result<void>() : Result<void>(result.error())));
  return result;
}

Result<MergeResult> MergerEngine::merge_party(const master_command::StartMerge& job) {
  MergeResult result{version_, {}};
  std::vector<Contribution> contributions = job.contributions;
  while (true) {
    SPEEDO_ASSIGN(const Party party, open(contributions, result.rejected));
    if (party.contributions.empty()) break;
    SPEEDO_ASSIGN(const Fault fault, try_merge(party, job));
    if (!fault) {
      std::swap(record_, next_);
      version_.value += 1;
      state_ = job.state;
      checkpoint_.count_merge();
      break;
    }
    const WorkerId worker = party.contributions[*fault].worker;
    SPEEDO_WARN("contribution of worker {} is not merged: missing, damaged or not finite",
                worker.value);
    result.rejected.push_back(worker);
    contributions = party.contributions;
    contributions.erase(contributions.begin() + static_cast<std::ptrdiff_t>(*fault));
  }
  // A store that lost a contribution may have lost the weights, too.
  if (!result.rejected.empty()) restore_lost_weights();
  result.version = version_;
  return result;
}

// On any outcome but "no fault" weights, histories and the published record are as before.
Result<MergerEngine::Fault> MergerEngine::try_merge(const Party& party,
                                                    const master_command::StartMerge& job) {
  const Version next{version_.value + 1};
  const auto writer = store_->write(weights_key(), info_of(next, job.state));
  switch (spec().kind) {
    case UpdateKind::kGradientOnly:
      return merge_gradients(party, job, *writer);
    case UpdateKind::kElasticMaster:
      return merge_locals(party, *writer);
    case UpdateKind::kFullDelta:
    case UpdateKind::kElastic:
      break;
  }
  return merge_deltas(party, job.mean, *writer);
}

// Full deltas: their sum or mean, by the factor. Elastic differences: their sum.
Result<MergerEngine::Fault> MergerEngine::merge_deltas(const Party& party, bool mean,
                                                       RecordWriter& writer) {
  const bool elastic = is_elastic(spec().kind);
  const bool averages = mean && !elastic;
  const float factor = elastic ? 1.0F : spec().factor;
  const float skip = elastic ? 0.0F : spec().skip;
  std::vector<float> scales;
  for (const Contribution& contribution : party.contributions) {
    scales.push_back(averages ? contribution.weight : contribution.weight / factor);
  }
  const float mean_scale = 1.0F / static_cast<float>(scales.size()) / factor;
  const auto merge = [&](std::size_t chunk, MergedParts parts) -> Fault {
    const std::span<const float> weights = chunk_of(std::span<const float>(record_), chunk);
    const std::span<float> next = chunk_of(std::span(next_), chunk);
    if (averages) {
      if (const Fault fault = sum_parts(parts, scales)) return fault;
      const bool finite = add_scaled(weights, parts[0], mean_scale, skip, next);
      return finite ? Fault() : Fault(0);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::span<const float> from = i == 0 ? weights : next;
      if (!add_scaled(from, parts[i], scales[i], skip, next)) return i;
    }
    return std::nullopt;
  };
  const auto merged = [&](std::size_t chunk, MergedParts) {
    writer.write(chunk, chunk_of(std::span<const float>(next_), chunk));
  };
  SPEEDO_ASSIGN(const Fault fault, pass_.run(record_.size(), party.readers, merge, merged));
  if (!fault) SPEEDO_TRY(writer.finish());
  return fault;
}

// SpeeDO's form of elastic averaging: each worker's difference to the same weights; what is left of
// its own weights goes back to it before the manifest of the new weights, so that a worker whose
// contribution is said to be merged finds it.
Result<MergerEngine::Fault> MergerEngine::merge_locals(const Party& party, RecordWriter& writer) {
  const std::size_t count = party.contributions.size();
  if (locals_.size() < count) locals_.resize(count, std::vector<float>(record_.size()));
  std::vector<std::unique_ptr<RecordWriter>> back;
  for (const Contribution& contribution : party.contributions) {
    RecordInfo info = info_of(Version{contribution.run.value}, {});
    info.worker = contribution.worker.value;
    back.push_back(
        store_->write(local_key(config_.epoch, contribution.worker.value), info));
  }
  const auto merge = [&](std::size_t chunk, MergedParts parts) -> Fault {
    const std::span<const float> centre = chunk_of(std::span<const float>(record_), chunk);
    const std::span<float> next = chunk_of(std::span(next_), chunk);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<float> local = chunk_of(std::span(locals_[i]), chunk);
      const float rate = spec().moving_rate * party.contributions[i].weight;
      elastic_difference(centre, rate, parts[i], local);
      if (!merge_add(i == 0 ? centre : next, local, 1.0F, next)) return i;
      std::copy(parts[i].begin(), parts[i].end(), local.begin());
    }
    return std::nullopt;
  };
  const auto merged = [&](std::size_t chunk, MergedParts) {
    for (std::size_t i = 0; i < count; ++i) {
      back[i]->write(chunk, chunk_of(std::span<const float>(locals_[i]), chunk));
    }
    writer.write(chunk, chunk_of(std::span<const float>(next_), chunk));
  };
  SPEEDO_ASSIGN(const Fault fault, pass_.run(record_.size(), party.readers, merge, merged));
  if (fault) return fault;
  for (const auto& local : back) SPEEDO_TRY(local->finish());
  SPEEDO_TRY(writer.finish());
  return Fault();
}

Result<MergerEngine::Fault> MergerEngine::merge_gradients(const Party& party,
                                                          const master_command::StartMerge& job,
                                                          RecordWriter& writer) {
  std::vector<float> scales;
  for (const Contribution& contribution : party.contributions) {
    scales.push_back(contribution.weight);
  }
  const float mean_scale = 1.0F / static_cast<float>(scales.size());
  const auto merge = [&](std::size_t, MergedParts parts) -> Fault {
    if (const Fault fault = sum_parts(parts, scales)) return fault;
    if (job.mean && scales.size() > 1) merge_scale(mean_scale, parts[0]);
    return std::nullopt;
  };
  const bool by_chunk = !rule_->needs_whole_gradient();
  Result<void> applied;
  const auto merged = [&](std::size_t chunk, MergedParts parts) {
    rule_->stage(chunk * kChunkElements, parts[0]);
    if (by_chunk && applied) applied = apply_rule(job, bucket_of_chunk(chunk), writer);
  };
  rule_->begin();
  auto fault = pass_.run(record_.size(), party.readers, merge, merged);
  if (fault && !*fault && applied) {
    const auto whole = static_cast<std::int64_t>(record_.size());
    if (!by_chunk) applied = apply_rule(job, {0, whole}, writer);
    if (applied) applied = writer.finish();
    if (applied) return fault;
  }
  rule_->take_back(record_);
  if (!applied) return applied.error();
  return fault;
}

Bucket MergerEngine::bucket_of_chunk(std::size_t chunk) const {
  return {static_cast<std::int64_t>(chunk * kChunkElements),
          static_cast<std::int64_t>(chunk_elements(record_.size(), chunk))};
}

// The bucket's next weights go out as they are made. Requires: it is made of whole chunks.
Result<void> MergerEngine::apply_rule(const master_command::StartMerge& job, const Bucket& bucket,
                                      RecordWriter& writer) {
  rule_->apply(static_cast<std::int64_t>(job.iteration), job.lr_scale, bucket);
  const auto end = static_cast<std::size_t>(bucket.end());
  for (auto offset = static_cast<std::size_t>(bucket.offset); offset < end;) {
    const std::size_t chunk = offset / kChunkElements;
    const std::span<float> next = chunk_of(std::span(next_), chunk);
    rule_->read_weights(offset, next);
    if (!all_finite(next)) {
      return Error{ErrorCode::kNotFinite,
                   "the update of iteration " + std::to_string(job.iteration) +
                       " makes weights that are NaN or infinite: lower the learning rate"};
    }
    writer.write(chunk, next);
    offset += next.size();
  }
  return {};
}

}  // namespace speedo
