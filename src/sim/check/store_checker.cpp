#include "sim/check/store_checker.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <speedo/store/record_store.hpp>

#include "speedo.pb.h"
#include "store/mastership.hpp"
#include "store/record_codec.hpp"

namespace speedo::sim {

StoreChecker::StoreChecker(KeyValue& map, const RecordChecker& records, const std::string& job,
                           std::uint64_t publish_interval, Violations& violations)
    : map_(map),
      records_(records),
      weights_manifest_(RecordKeys(job, weights_key()).manifest()),
      checkpoint_manifest_(RecordKeys(job, checkpoint_key()).manifest()),
      publish_interval_(publish_interval),
      violations_(violations) {}

void StoreChecker::granted(std::uint64_t term) {
  violations_.expect(Check::kLease, term > granted_,
                     "mastership granted with a term that is not the highest");
  granted_ = std::max(granted_, term);
  newest_ = std::max(newest_, term);
}

// What it has lost it may be told again, by whoever comes first; the newest master has the last
// word.
void StoreChecker::restarted(bool has_weights) {
  granted_ = 0;
  const Seen before = last_;
  last_ = has_weights ? read(weights_manifest_).value_or(Seen{}) : Seen{};
  const bool is_another = last_.term != before.term || last_.version != before.version;
  was_whole_ = was_whole_ || is_another;
  const std::optional<Seen> checkpoint = read(checkpoint_manifest_);
  went_back_to_ = checkpoint ? std::optional(checkpoint->iteration) : std::nullopt;
}

std::optional<StoreChecker::Seen> StoreChecker::read(const std::string& manifest_key) {
  const KvPtr operation = get_whole(manifest_key);
  map_.submit(operation);
  if (operation->error) return std::nullopt;
  const auto manifest = decode_manifest(operation->text);
  if (!manifest) {
    violations_.report(Check::kPublication, "the manifest '" + manifest_key + "' is damaged");
    return std::nullopt;
  }
  record::Session session;
  violations_.expect(Check::kPublication, session.ParseFromString(manifest->info.state),
                     "weights were published without the session's state");
  return Seen{manifest->info.term, manifest->info.version, session.iteration()};
}

bool StoreChecker::are_readable() {
  const KvPtr manifest = get_whole(weights_manifest_);
  map_.submit(manifest);
  return !manifest->error && records_.is_whole(weights_manifest_);
}

void StoreChecker::done(const KvOperation& operation) {
  if (operation.kind != KvOperation::Kind::kSet || !took_effect(operation)) return;
  if (operation.key != checkpoint_manifest_ && operation.key != weights_manifest_) {
    was_whole_ = was_whole_ || are_readable();
    return;
  }
  const std::optional<Seen> now = read(operation.key);
  if (!now) return;
  if (operation.key == weights_manifest_) return judge(*now);
  if (keeps_up(now->iteration, last_.iteration)) went_back_to_.reset();
}

// What a master puts that is no longer the newest takes no effect.
void StoreChecker::unanswered(const KvOperation& operation) {
  const bool sets = operation.kind == KvOperation::Kind::kSet;
  if (sets && operation.key == weights_manifest_ && operation.master) {
    unsure_ = std::max(unsure_, std::optional(operation.master->term));
  }
}

bool StoreChecker::has_untold(std::uint64_t term) const {
  const bool is_told = told_term_ == term && told_version_ >= last_.version;
  return unsure_ == term && last_.term == term && !is_told;
}

void StoreChecker::published(std::uint64_t term, std::uint64_t version, bool may_be_lost) {
  told_term_ = term;
  told_version_ = version;
  if (last_.term == term && last_.version == version) is_told_ = true;
  if (may_be_lost || (last_.term == term && last_.version >= version)) return;
  violations_.report(
      Check::kPublication,
      fmt::format("a master says that it has published version {}, and the store has "
                  "version {} of term {}",
                  version, last_.version, last_.term));
}

// A master that dies between two checkpoints loses what it has merged since, and one merge more
// that it published and nobody knows of.
bool StoreChecker::keeps_up(std::uint64_t iteration, std::uint64_t reached) const {
  return iteration + publish_interval_ + 1 >= reached;
}

void StoreChecker::judge(const Seen& now) {
  const bool is_whole = records_.is_whole(weights_manifest_);
  const bool was_known = is_known();
  const bool was_whole = std::exchange(was_whole_, is_whole);
  if (now.term == last_.term && now.version == last_.version) {
    was_whole_ = was_whole_ || was_whole;
    return;
  }
  is_told_ = false;
  if (now.term < std::max(granted_, last_.term)) {
    violations_.report(Check::kLease,
                       fmt::format("a stale master's weights are read: term {} after {}",
                                   now.term, std::max(granted_, last_.term)));
  }
  const bool forgot = granted_ < newest_ && last_.term < newest_;
  granted_ = std::max(granted_, now.term);
  const bool may_put_back = unsure_ == now.term || !was_known;
  const bool puts_back = may_put_back && now.version + 1 == last_.version;
  if (now.term == last_.term && !puts_back) {
    if (now.version <= last_.version) {
      violations_.report(Check::kPublication,
                         fmt::format("published versions of term {} go back from {} to {}",
                                     now.term, last_.version, now.version));
    }
    violations_.expect(Check::kPublication, now.iteration >= last_.iteration,
                       "iterations go back within one master");
  } else if (now.term != last_.term && !forgot) {
    const std::uint64_t reached =
        std::min(last_.iteration, went_back_to_.value_or(last_.iteration));
    // Chunks were lost before their manifest came: nobody could read the newest.
    const bool is_lost = !was_whole && records_.may_have_lost_data();
    if (!is_lost && !keeps_up(now.iteration, reached)) {
      violations_.report(Check::kStart,
                         fmt::format("iterations go back from {} to {}, the publish interval is {}",
                                     reached, now.iteration, publish_interval_));
    }
  }
  last_ = now;
}

}  // namespace speedo::sim
