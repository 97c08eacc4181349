#include "sim/check/record_checker.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <speedo/store/layout.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/store/part_store.hpp>

#include "base/parse_number.hpp"
#include "store/record_codec.hpp"

namespace speedo::sim {
namespace {

constexpr std::string_view kManifestEnd = ":m";
// A put that was under way when the store lost its data is over by then, however often its process
// was stopped and its connection was lost.
constexpr Instant kPutTimeMax = std::chrono::seconds(60);

}  // namespace

bool RecordChecker::may_have_lost_data() const {
  return lost_data_at_ && clock_.now() - *lost_data_at_ < kPutTimeMax;
}

void RecordChecker::store_lost_data(std::size_t server) {
  lost_data_at_ = clock_.now();
  if (server == 0) lost_manifests_at_ = lost_data_at_;
  late_.insert(gone_.begin(), gone_.end());
}

// "worker/TERM/WORKER" or "master/TERM/WORKER" behind the job's prefix, whatever follows.
std::optional<RecordChecker::Owner> RecordChecker::owner_of(const std::string& key) const {
  const std::string prefix = job_prefix(job_);
  const std::string name = key.starts_with(prefix) ? key.substr(prefix.size()) : std::string();
  if (!is_handed_over(name)) return std::nullopt;
  const std::string rest = name.substr(name.find('/') + 1);
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::size_t end = rest.find_first_of("/:", slash + 1);
  const auto term = parse_number<std::uint64_t>(std::string_view(rest).substr(0, slash));
  const auto worker =
      parse_number<std::uint64_t>(std::string_view(rest).substr(slash + 1, end - slash - 1));
  if (!term || !worker) return std::nullopt;
  return Owner{*term, *worker};
}

// Whoever puts the next version leaves the chunks of this one alone, in each part; what was lost is
// put again as it was.
void RecordChecker::look_at_named(const KvOperation& operation) {
  const std::string manifest = RecordKeys(job_, weights_key()).manifest();
  const bool is_set = operation.kind == KvOperation::Kind::kSet;
  const bool is_known =
      !lost_manifests_at_ || clock_.now() - *lost_manifests_at_ >= kPutTimeMax;
  const auto is_replaced = [&](const Promises& promises) {
    const auto set = is_set ? promises.find(operation.key) : promises.end();
    return set != promises.end() && is_known && !is_kept(set->first, set->second);
  };
  const auto names_any = [&](const Promises& promises) {
    return std::ranges::any_of(operation.keys,
                               [&](const std::string& key) { return promises.contains(key); });
  };
  const bool is_erased = names_any(named_) && !may_have_lost_data() && !is_whole(manifest);
  if (is_replaced(named_) || is_erased) {
    violations_.report(Check::kPublication, "a chunk of the newest weights is replaced or erased");
  }
  const bool is_copy_erased =
      names_any(copies_) && !may_have_lost_data() && names_any(copies_of_weights());
  if (is_replaced(copies_) || is_copy_erased) {
    violations_.report(Check::kPublication, "a copy of the newest weights is replaced or erased");
  }
  if (is_set && operation.key == manifest) take_newest_weights();
}

// Chunk C's copy has its slot, or slot 0 of weights that were put as a whole.
RecordChecker::Promises RecordChecker::copies_of_weights() const {
  Promises promises;
  const auto found = expects_copies_ ? read(RecordKeys(job_, weights_key()).manifest()) : nullptr;
  if (!found || found->error) return promises;
  const auto manifest = decode_manifest(found->text);
  for (std::size_t chunk = 0; manifest && chunk < manifest->chunks.size(); ++chunk) {
    const std::size_t part = chunk % manifest->servers;
    const RecordKeys names(job_, part_copy_key(part, manifest->servers, weights_key()));
    const std::uint32_t slot = manifest->slots.empty() ? 0 : manifest->slots[part];
    promises[names.chunk(manifest->info.term, slot, chunk)] = {
        .version = manifest->info.version, .checksum = manifest->chunks[chunk].checksum};
  }
  return promises;
}

// Those of parts that stay as they were may be lost since long, and so may all of a version that is
// put back.
void RecordChecker::take_newest_weights() {
  named_ = promises_of(RecordKeys(job_, weights_key()).manifest());
  const Promises before = std::exchange(copies_, copies_of_weights());
  if (may_have_lost_data()) return;
  for (const auto& [key, promise] : copies_) {
    const auto known = before.find(key);
    const bool is_new = known == before.end() || known->second.version < promise.version;
    const bool goes_back =
        !before.empty() && before.begin()->second.version > promise.version;
    if (!is_new || goes_back || is_kept(key, promise)) continue;
    return violations_.report(Check::kPublication,
                              fmt::format("the copy '{}' of the newest weights is not there", key));
  }
}

void RecordChecker::done(const KvOperation& operation) {
  look_at_named(operation);
  if (operation.kind != KvOperation::Kind::kSet) return;
  const auto owner = owner_of(operation.key);
  const bool is_late = owner && (gone_.contains(*owner) || ended_terms_.contains(owner->first) ||
                                 owner->first < newest_term_);
  if (is_late) late_.insert(*owner);
  if (owner && ended_terms_.contains(newest_term_)) after_end_.insert(*owner);
  const bool is_manifest = operation.key.ends_with(kManifestEnd);
  // What comes late may have been erased in part.
  if (!is_manifest || is_late || may_have_lost_data() || is_whole(operation.key)) return;
  violations_.report(Check::kPublication,
                     fmt::format("'{}' is there before its chunks", operation.key));
}

KvPtr RecordChecker::read(const std::string& key) const {
  const KvPtr operation = get_whole(key);
  map_.submit(operation);
  return operation;
}

RecordKeys RecordChecker::names_of(const std::string& manifest_key) const {
  const std::size_t start = job_prefix(job_).size();
  return {job_, manifest_key.substr(start, manifest_key.size() - start - kManifestEnd.size())};
}

RecordChecker::Promises RecordChecker::promises_of(const std::string& manifest_key) const {
  const auto found = read(manifest_key);
  const auto manifest = found->error ? Result<RecordManifest>(*found->error)
                                     : decode_manifest(found->text);
  Promises promises;
  if (!manifest) return promises;
  const RecordKeys names = names_of(manifest_key);
  for (std::size_t chunk = 0; chunk < manifest->chunks.size(); ++chunk) {
    promises[names.chunk(manifest->info.term, manifest->slot_of(chunk), chunk)] = {
        .version = manifest->info.version, .checksum = manifest->chunks[chunk].checksum};
  }
  return promises;
}

bool RecordChecker::is_kept(const std::string& key, const Promise& promise) const {
  const auto value = read(key);
  if (value->error) return false;
  const auto head = decode_chunk_head(std::string_view(value->text).substr(0, kChunkHeadBytes));
  return head && head->version == promise.version && head->checksum == promise.checksum;
}

bool RecordChecker::is_whole(const std::string& manifest_key) const {
  const auto found = read(manifest_key);
  if (found->error) return true;
  if (!decode_manifest(found->text)) return false;
  return std::ranges::all_of(promises_of(manifest_key), [this](const auto& each) {
    return is_kept(each.first, each.second);
  });
}

std::vector<std::string> RecordChecker::handed_over() const {
  std::vector<std::string> all;
  for (const std::string& prefix : {contribution_key_prefix(), handout_key_prefix()}) {
    const auto keys = map_.list(job_prefix(job_) + prefix);
    all.insert(all.end(), keys->begin(), keys->end());
  }
  return all;
}

void RecordChecker::check_erased(std::uint64_t term, std::uint64_t worker) {
  if (late_.contains({term, worker})) return;
  for (const std::string& key : handed_over()) {
    if (owner_of(key) != Owner{term, worker}) continue;
    return violations_.report(Check::kErasure,
                              fmt::format("'{}' of a worker that is gone is never erased", key));
  }
}

void RecordChecker::withdrawn(std::string_view contribution) {
  if (may_have_lost_data()) return;
  const auto keys = map_.list(job_prefix(job_) + std::string(contribution) + ':');
  if (keys->empty()) return;
  violations_.report(Check::kErasure,
                     fmt::format("'{}' of a run that was given up is not erased", keys->front()));
}

void RecordChecker::master_ends(std::uint64_t term) {
  ended_terms_.insert(term);
  if (term == newest_term_) after_end_.clear();
}

void RecordChecker::check_end() {
  if (may_have_lost_data()) return;
  for (const std::string& key : handed_over()) {
    const auto owner = owner_of(key);
    if (owner && after_end_.contains(*owner)) continue;
    return violations_.report(Check::kErasure, fmt::format("'{}' is left behind at the end", key));
  }
}

}  // namespace speedo::sim
