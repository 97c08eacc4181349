#include <speedo/train/checkpoint.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <speedo/core/update_rule.hpp>
#include <speedo/train/merge.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

// No number of versions of a real job comes near it; damaged ones do.
constexpr std::uint64_t kVersionMax = std::uint64_t{1} << 62U;

// A record that may serve, before its values are read.
struct Candidate {
  std::string key;
  RecordInfo info;
  std::size_t histories = 0;

  auto age() const { return std::pair(info.term, info.version); }
};

Error unusable(const std::string& key, const std::string& what) {
  return {ErrorCode::kCorrupt, fmt::format("record '{}' in the store {}", key, what)};
}

// Error kCorrupt: the record is there, but cannot serve.
Result<Candidate> look_at(RecordStore& store, const std::string& key,
                          const ParameterLayout& layout) {
  SPEEDO_ASSIGN(const std::unique_ptr<RecordReader> reader, store.read(key));
  const RecordInfo& info = reader->info();
  if (info.model != layout.digest()) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("record '{}' in the store is of model {}, this net is {}; use another "
                             "--job, or resume with the net that wrote it",
                             key, to_string(info.model), to_string(layout.digest()))};
  }
  const auto count = static_cast<std::uint64_t>(layout.element_count());
  const bool is_whole =
      count == 0 ? info.element_count == 0
                 : info.element_count >= count && info.element_count % count == 0;
  if (!is_whole) {
    return unusable(key, fmt::format("has {} floats, the net has {}", info.element_count, count));
  }
  const std::uint64_t histories = count == 0 ? 0 : info.element_count / count - 1;
  if (histories > UpdateRule::kHistoriesMax) {
    return unusable(key, fmt::format("has {} solver histories, no solver has more than {}",
                                     histories, UpdateRule::kHistoriesMax));
  }
  if (info.version > kVersionMax) {
    return unusable(key, fmt::format("is of version {}, which no job reaches", info.version));
  }
  return Candidate{key, info, static_cast<std::size_t>(histories)};
}

Result<RecordInfo> read_values(RecordStore& store, const Candidate& candidate,
                               std::vector<float>& values) {
  SPEEDO_ASSIGN(const std::unique_ptr<RecordReader> reader, store.read(candidate.key));
  const RecordInfo& info = reader->info();
  if (info.model != candidate.info.model || info.element_count != candidate.info.element_count) {
    return unusable(candidate.key, "was replaced while it was read");
  }
  values.resize(static_cast<std::size_t>(info.element_count));
  const std::size_t chunks = chunk_count(info.element_count);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    reader->request(chunk, chunk_of(std::span(values), chunk));
  }
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) SPEEDO_TRY(reader->wait(chunk));
  return info;
}

Result<Checkpoint> read_whole(RecordStore& store, const Candidate& candidate,
                              const ParameterLayout& layout, bool wants_histories) {
  const auto count = static_cast<std::size_t>(layout.element_count());
  std::vector<float> values;
  auto info = read_values(store, candidate, values);
  // An earlier master's last breath may have overwritten it meanwhile.
  if (!info && info.error().code == ErrorCode::kNotFound) {
    info = read_values(store, candidate, values);
  }
  if (!info) return info.error();
  if (!all_finite(values)) return unusable(candidate.key, "has values that are NaN or infinite");
  Checkpoint checkpoint;
  checkpoint.version = Version{info->version};
  checkpoint.session = info->state;
  for (std::size_t i = 0; wants_histories && i < candidate.histories; ++i) {
    const std::span<const float> history = std::span(values).subspan((i + 1) * count, count);
    checkpoint.histories.emplace_back(history.begin(), history.end());
  }
  values.resize(count);
  values.shrink_to_fit();
  checkpoint.weights = std::move(values);
  return checkpoint;
}

}  // namespace

bool wants_histories(const std::vector<UpdateSpec>& stages) {
  return std::any_of(stages.begin(), stages.end(), keeps_histories);
}

Result<Checkpoint> read_checkpoint(RecordStore& store, const ParameterLayout& layout,
                                   bool wants_histories) {
  std::vector<Candidate> candidates;
  std::optional<Error> damage;
  for (const std::string& key : {weights_key(), checkpoint_key()}) {
    auto candidate = look_at(store, key, layout);
    if (candidate) {
      candidates.push_back(std::move(*candidate));
    } else if (candidate.error().code == ErrorCode::kCorrupt) {
      if (!damage || key == checkpoint_key()) damage = candidate.error();
    } else if (candidate.error().code != ErrorCode::kNotFound) {
      return candidate.error();
    }
  }
  const bool any_histories = std::any_of(candidates.begin(), candidates.end(),
                                         [](const Candidate& c) { return c.histories > 0; });
  if (wants_histories && (any_histories || damage)) {
    std::erase_if(candidates, [](const Candidate& c) { return c.histories == 0; });
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.age() > b.age(); });
  for (const Candidate& candidate : candidates) {
    auto checkpoint = read_whole(store, candidate, layout, wants_histories);
    const bool is_damaged = !checkpoint && (checkpoint.error().code == ErrorCode::kCorrupt ||
                                            checkpoint.error().code == ErrorCode::kNotFound);
    if (checkpoint && damage) checkpoint->passed_over = damage->message;
    if (!is_damaged) return checkpoint;
    // A store that has lost it whole since then is one that never had it.
    const auto again = look_at(store, candidate.key, layout);
    if (!again && again.error().code == ErrorCode::kNotFound) continue;
    damage = Error{ErrorCode::kCorrupt, checkpoint.error().message};
  }
  if (damage) return *damage;
  return Error{ErrorCode::kNotFound,
               "the store has no weights of this job"};
}

}  // namespace speedo
