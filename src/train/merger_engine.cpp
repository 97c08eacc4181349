// One merge: the contributions are read, merged and written chunk by chunk (MergerPass); the
// manifest goes last; then the next weights become the weights. A contribution at fault ends the
// pass; the merge begins again without it, so nothing of it remains. A failed merge leaves all as
// it was.

#include "train/merger_engine.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/train/merge.hpp>

#include "base/log.hpp"
#include "store/chunk_range.hpp"

namespace speedo {
namespace {

using Parts = MergerPass::Parts;
using Fault = std::optional<std::size_t>;

// parts[0] = sum of weight x part, in order.
Fault sum_parts(Parts parts, std::span<const float> scales) {
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

MergerEngine::MergerEngine(const MergerConfig& config, const ParameterLayout& layout,
                           std::vector<float> weights, Version first_version,
                           std::shared_ptr<ParameterStore> store)
    : config_(config),
      model_(layout.digest()),
      store_(std::move(store)),
      weights_(std::move(weights)),
      next_(weights_.size()),
      version_(first_version),
      pass_(weights_.size(), config.threads) {}

RecordInfo MergerEngine::info_of(Version version) const {
  RecordInfo info;
  info.model = model_;
  info.version = version.value;
  info.base_version = version_.value;
  info.element_count = weights_.size();
  return info;
}

Result<Version> MergerEngine::publish() {
  SPEEDO_TRY(put(*store_, weights_key(), info_of(version_), weights_));
  published_ = true;
  return version_;
}

Merger::Copy MergerEngine::copy() {
  Merger::Copy copy{version_, weights_, {}};
  if (rule_) copy.histories = rule_->histories();
  return copy;
}

void MergerEngine::restore_lost_weights() {
  if (!published_) return;
  const auto reader = store_->read(weights_key());
  const bool lost =
      reader ? (*reader)->info().version < version_.value : !is_transient(reader.error().code);
  if (!lost) return;
  SPEEDO_WARN("the store has lost the weights of version {}: publishing them again",
              version_.value);
  if (auto done = publish(); !done) SPEEDO_WARN("{}", done.error().message);
}

Result<std::unique_ptr<RecordReader>> MergerEngine::open_one(const Contribution& contribution) {
  SPEEDO_ASSIGN(std::unique_ptr<RecordReader> reader,
                store_->read(contribution_key(contribution.worker.value)));
  const RecordInfo& info = reader->info();
  if (info.model != model_ || info.element_count != weights_.size()) {
    return Error{ErrorCode::kMismatch, "it is of another model"};
  }
  if (info.worker != contribution.worker.value) {
    return Error{ErrorCode::kMismatch, "it is of worker " + std::to_string(info.worker)};
  }
  if (info.version != contribution.run.value) {
    return Error{ErrorCode::kMismatch, "it is of run " + std::to_string(info.version)};
  }
  return reader;
}

Result<MergerEngine::Party> MergerEngine::open(const std::vector<Contribution>& contributions,
                                               std::vector<WorkerId>& rejected) {
  Party party;
  for (const Contribution& contribution : contributions) {
    auto reader = open_one(contribution);
    if (reader) {
      party.contributions.push_back(contribution);
      party.readers.push_back(std::move(*reader));
      continue;
    }
    const Error& error = reader.error();
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
  MergeResult result{version_, {}};
  std::vector<Contribution> contributions = job.contributions;
  while (true) {
    SPEEDO_ASSIGN(const Party party, open(contributions, result.rejected));
    if (party.contributions.empty()) break;
    SPEEDO_ASSIGN(const Fault fault, try_merge(party, job));
    if (!fault) {
      std::swap(weights_, next_);
      version_.value += 1;
      published_ = true;
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
Result<Fault> MergerEngine::try_merge(const Party& party, const master_command::StartMerge& job) {
  const auto writer = store_->write(weights_key(), info_of(Version{version_.value + 1}));
  if (!rule_) {
    SPEEDO_ASSIGN(const Fault fault, merge_deltas(party, job.mean, *writer));
    if (fault) return fault;
    SPEEDO_TRY(writer->finish());
    return Fault();
  }
  return merge_gradients(party, job.mean, static_cast<std::int64_t>(job.iteration), *writer);
}

Result<Fault> MergerEngine::merge_deltas(const Party& party, bool mean, RecordWriter& writer) {
  std::vector<float> scales;
  for (const Contribution& contribution : party.contributions) {
    scales.push_back(mean ? contribution.weight : contribution.weight / config_.factor);
  }
  const float mean_scale = 1.0F / static_cast<float>(scales.size()) / config_.factor;
  const auto merge = [&](std::size_t chunk, Parts parts) -> Fault {
    const std::span<const float> weights = chunk_of(std::span<const float>(weights_), chunk);
    const std::span<float> next = chunk_of(std::span(next_), chunk);
    if (mean) {
      if (const Fault fault = sum_parts(parts, scales)) return fault;
      const bool finite = add_scaled(weights, parts[0], mean_scale, config_.skip, next);
      return finite ? Fault() : Fault(0);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::span<const float> from = i == 0 ? weights : next;
      if (!add_scaled(from, parts[i], scales[i], config_.skip, next)) return i;
    }
    return std::nullopt;
  };
  const auto merged = [&](std::size_t chunk, Parts) {
    writer.write(chunk, chunk_of(std::span<const float>(next_), chunk));
  };
  return pass_.run(party.readers, merge, merged);
}

Result<Fault> MergerEngine::merge_gradients(const Party& party, bool mean, std::int64_t iteration,
                                            RecordWriter& writer) {
  std::vector<float> scales;
  for (const Contribution& contribution : party.contributions) {
    scales.push_back(contribution.weight);
  }
  const float mean_scale = 1.0F / static_cast<float>(scales.size());
  const auto merge = [&](std::size_t, Parts parts) -> Fault {
    if (const Fault fault = sum_parts(parts, scales)) return fault;
    if (mean && scales.size() > 1) merge_scale(mean_scale, parts[0]);
    return std::nullopt;
  };
  const auto merged = [&](std::size_t chunk, Parts parts) {
    rule_->stage(chunk * kChunkElements, parts[0]);
  };
  SPEEDO_ASSIGN(const Fault fault, pass_.run(party.readers, merge, merged));
  if (fault) return fault;
  if (auto done = apply_rule(iteration, writer); !done) {
    rule_->take_back(weights_);
    return done.error();
  }
  return Fault();
}

Result<void> MergerEngine::apply_rule(std::int64_t iteration, RecordWriter& writer) {
  rule_->apply(iteration);
  for (std::size_t chunk = 0; chunk < chunk_count(next_.size()); ++chunk) {
    const std::span<float> next = chunk_of(std::span(next_), chunk);
    rule_->read_weights(chunk * kChunkElements, next);
    if (!all_finite(next)) {
      return Error{ErrorCode::kNotFinite,
                   "the update of iteration " + std::to_string(iteration) +
                       " makes weights that are NaN or infinite: lower the learning rate"};
    }
    writer.write(chunk, next);
  }
  return writer.finish();
}

}  // namespace speedo
