#include "train/parts/part_histories.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <speedo/core/update_rule.hpp>
#include <speedo/train/merge.hpp>

#include "store/read_once.hpp"
#include "train/parts/part_clip.hpp"

namespace speedo {
namespace {

// A part's own record, then the copy on the next server.
std::vector<std::string> checkpoint_keys_of(PartClip clip) {
  std::vector<std::string> keys = {part_key(clip.part, checkpoint_key())};
  if (clip.parts > 1) keys.push_back(part_copy_key(clip.part, clip.parts, checkpoint_key()));
  return keys;
}

struct PartRecordValues {
  RecordInfo info;
  std::vector<float> values;  // the weights' place, then each history
};

// Error kCorrupt: it is there, but is no checkpoint of such a part.
Result<PartRecordValues> read_one(RecordStore& store, const std::string& key,
                                  const ParameterLayout& part) {
  SPEEDO_ASSIGN(const auto reader, store.read(key));
  const RecordInfo& there = reader->info();
  const auto count = static_cast<std::uint64_t>(part.element_count());
  const bool fits = there.model == part.digest() && count > 0 &&
                    there.element_count % count == 0 && there.element_count > count &&
                    there.element_count / count - 1 <= UpdateRule::kHistoriesMax;
  if (!fits) {
    return Error{ErrorCode::kCorrupt, fmt::format("record '{}' has no solver histories", key)};
  }
  std::vector<float> values(static_cast<std::size_t>(there.element_count));
  auto info = get_once(store, key, there.model, values);
  // A merger of an earlier master may have overwritten it meanwhile.
  if (!info && info.error().code == ErrorCode::kNotFound) {
    info = get_once(store, key, there.model, values);
  }
  if (!info) return info.error();
  if (!all_finite(values)) {
    return Error{ErrorCode::kCorrupt, fmt::format("record '{}' has values that are NaN", key)};
  }
  return PartRecordValues{*std::move(info), std::move(values)};
}

// A master's mergers put their checkpoints before its first weights: one of an earlier master is of
// a training that has gone on without histories since.
Result<PartRecordValues> read_of_part(RecordStore& store, PartClip clip,
                                      const ParameterLayout& layout, std::uint64_t term) {
  const ParameterLayout part = clip_layout(layout, clip);
  for (const std::string& key : checkpoint_keys_of(clip)) {
    auto found = read_one(store, key, part);
    if (!found && is_transient(found.error().code)) return found.error();
    if (found && found->info.term >= term) return found;
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("part {} of {} has none of the weights' master", clip.part + 1,
                           clip.parts)};
}

}  // namespace

std::vector<std::string> part_checkpoint_keys(std::size_t parts) {
  std::vector<std::string> keys;
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::string& key : checkpoint_keys_of({part, parts})) keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<std::string> part_checkpoints_in(ParameterStore& store) {
  const std::vector<std::string> keys = part_checkpoint_keys(store.parts());
  const auto records = store.read_all(keys);
  std::vector<std::string> there;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool is_absent = !records[i] && records[i].error().code == ErrorCode::kNotFound;
    if (!is_absent) there.push_back(keys[i]);
  }
  return there;
}

Result<PartHistories> read_part_histories(ParameterStore& store, const ParameterLayout& layout) {
  SPEEDO_ASSIGN(const auto reader, store.read(weights_key()));
  const RecordInfo& weights = reader->info();
  const auto count = static_cast<std::size_t>(layout.element_count());
  const std::size_t parts = std::min(store.parts(), chunk_count(count));
  PartHistories joined;
  for (std::size_t part = 0; part < parts; ++part) {
    const PartClip clip{part, store.parts()};
    SPEEDO_ASSIGN(const PartRecordValues found, read_of_part(store, clip, layout, weights.term));
    const std::size_t length = clipped_count(count, clip);
    const std::size_t histories = found.values.size() / length - 1;
    if (part == 0) joined.histories.assign(histories, std::vector<float>(count));
    if (histories != joined.histories.size()) {
      return Error{ErrorCode::kNotFound, "parts have different numbers of solver histories"};
    }
    for (std::size_t i = 0; i < histories; ++i) {
      const auto values = std::span(found.values).subspan((i + 1) * length, length);
      put_back(values, clip, joined.histories[i]);
    }
    joined.are_older = joined.are_older || found.info.version < weights.version;
  }
  if (joined.histories.empty()) {
    return Error{ErrorCode::kNotFound, "the weights have no parts"};
  }
  return joined;
}

}  // namespace speedo
