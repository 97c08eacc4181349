// What the checkers of a simulated cluster are told: of the store's operations, of the masters'
// starts and of their merges.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/proof/proof_cluster.hpp"
#include "store/chunked_store.hpp"
#include "store/mastership.hpp"
#include "store/read_once.hpp"
#include "store/record_codec.hpp"
#include "train/parts/clipped_store.hpp"

namespace speedo::sim {
namespace {

// Of a master that reaches the store, which has not restarted meanwhile.
constexpr Instant kEraseTime = std::chrono::seconds(15);

std::optional<std::vector<float>> contribution_values(RecordStore& store, const std::string& name,
                                                      const RecordInfo& info) {
  std::vector<float> values(info.element_count);
  if (!get_once(store, name, info.model, values)) return std::nullopt;
  return values;
}

}  // namespace

void ProofCluster::watch_store(std::size_t server, const KvOperation& operation) {
  if (operation.kind == KvOperation::Kind::kClaim) watch_claim(operation);
  watch_contribution(operation);
  lease_checker_.done(operation, server);
  record_checker_.done(operation);
  store_checker_.done(operation);
  watch_parts(operation);
}

void ProofCluster::watch_unanswered(const KvOperation& operation) {
  lease_checker_.unanswered(operation);
  store_checker_.unanswered(operation);
}

// Keeps the newest manifest of weights in parts: the store may go back behind it.
void ProofCluster::watch_parts(const KvOperation& operation) {
  const std::string key = RecordKeys(scenario_.config.job, weights_key()).manifest();
  const bool sets_it = operation.kind == KvOperation::Kind::kSet && operation.key == key;
  if (!sets_it || !took_effect(operation) || !scenario_.has_weights_in_parts()) return;
  const KvPtr put = get_whole(key);
  servers_.shared_map()->submit(put);
  if (put->error) return;
  auto manifest = decode_manifest(put->text);
  newest_parts_.reset();
  if (manifest && !manifest->slots.empty()) newest_parts_ = *std::move(manifest);
}

// Whether no server has some part of the newest weights, although an older version may be whole.
bool ProofCluster::misses_newest_part() {
  if (!newest_parts_) return false;
  ChunkedStore store(servers_.shared_map(), scenario_.config.job);
  store.fence(newest_parts_->info.term);
  for (std::size_t part = 0; part < store.parts(); ++part) {
    WrittenPart written{newest_parts_->slots[part], {}};
    for (std::size_t i = part; i < newest_parts_->chunks.size(); i += store.parts()) {
      written.checksums.push_back(newest_parts_->chunks[i].checksum);
    }
    const auto is_at = [&](const std::string& key) {
      const auto found = store.has_part(key, newest_parts_->info, part, written);
      return found && *found;
    };
    const std::string copy = part_copy_key(part, store.parts(), weights_key());
    if (!is_at(weights_key()) && !(scenario_.shard_copies && is_at(copy))) return true;
  }
  return false;
}

void ProofCluster::watch_lost_data(std::size_t server) {
  lineage_.all_may_be_lost();
  lease_checker_.store_lost_data(server);
  record_checker_.store_lost_data(server);
  const bool misses = misses_part();
  // Whoever has met that ends of it, also if an earlier state of the server is back by then.
  part_is_lost_ = part_is_lost_ || misses;
  const bool is_met = misses || misses_newest_part();
  for (const auto& each : masters_) each->met_lost_part = each->met_lost_part || is_met;
  store_checker_.restarted(!misses);
}

// What a worker has put is known by its manifest, which comes last. What was damaged since then may
// have been merged ahead, as long as it was whole.
void ProofCluster::watch_contribution(const KvOperation& operation) {
  const std::string prefix = job_prefix(scenario_.config.job);
  const std::string& key = operation.key;
  const bool is_one = operation.kind == KvOperation::Kind::kSet &&
                      key.starts_with(prefix + contribution_key_prefix()) && key.ends_with(":m") &&
                      !key.ends_with("/state:m");
  if (!is_one) return;
  ChunkedStore store(servers_.shared_map(), scenario_.config.job);
  const std::string name = key.substr(prefix.size(), key.size() - prefix.size() - 2);
  const auto reader = store.read(name);
  if (!reader) return;
  const RecordInfo info = (*reader)->info();
  const auto damaged = damaged_.extract(prefix + name);
  auto values = contribution_values(store, name, info);
  if (!values) {
    lineage_.may_be_lost(RunId{info.version});
    if (!damaged) return;
    const Damage& damage = damaged.mapped();
    spoilt_[info.version] = damage.mark;
    StoreServer& server = servers_.at(damage.server);
    server.flip_bit(damage.key);
    values = contribution_values(store, name, info);
    server.flip_bit(damage.key);
    if (!values) return;
  }
  take_contribution(name, info.version, std::move(*values));
}

void ProofCluster::watch_contribution_in_memory(const std::string& key, std::uint64_t run) {
  auto values = memory_.contribution(key, run);
  if (values) take_contribution(key, run, std::move(*values));
}

// Chunks that their server lost before the manifest came are put again behind it.
void ProofCluster::watch_what_was_put_again(const std::string& key, std::uint64_t run) {
  if (lineage_.knows(RunId{run})) return;
  ChunkedStore store(servers_.shared_map(), scenario_.config.job);
  const auto reader = store.read(key);
  if (!reader || (*reader)->info().version != run) return;
  auto values = contribution_values(store, key, (*reader)->info());
  if (values) take_contribution(key, run, std::move(*values));
}

void ProofCluster::take_contribution(const std::string& key, std::uint64_t run,
                                     std::vector<float> values) {
  newest_runs_[ProofMemory::owner_of(key)] = run;
  lineage_.contributed(RunId{run}, std::move(values));
}

// A process that trains again, or offers its memory to another master or as another worker, has it
// overwritten, whoever may still want what lay there for an incarnation of it that is over.
void ProofCluster::watch_overwriting(std::size_t place) {
  for (const std::string& key : places_[place].offered) {
    const auto found = newest_runs_.find(memory_.owner_of(key));
    if (found != newest_runs_.end()) lineage_.may_be_lost(RunId{found->second});
  }
}

void ProofCluster::watch_claim(const KvOperation& operation) {
  Mastership* const mastership = mastership_named(operation.master->holder);
  const auto answer = decode_answer(operation.text);
  if (mastership == nullptr || !answer) return;
  if (answer->kind == MasterAnswer::Kind::kDone) {
    if (mastership->master->term() == 0) {
      watch_granted(*mastership, operation.master->term);
    }
  } else {
    mastership->rival.felt();
  }
}

void ProofCluster::watch_granted(Mastership& mastership, std::uint64_t term) {
  ProofMaster& master = *mastership.master;
  master.granted(term);
  log_.add("mastership granted", master.node().id().value, term);
  const bool another_lives = std::ranges::any_of(masters_, [&](const auto& each) {
    return each.get() != &mastership && each->master->is_at_work();
  });
  if (another_lives) mastership.rival.felt();
  newest_term_ = std::max(newest_term_, term);
  mastership.store_incarnation = servers_.incarnation();
  // Files with states of workers are gone on from although the store has newer weights, and any
  // files if it has them no longer as a whole, though a manifest may have been put back.
  const auto& chosen = mastership.master->chosen_files();
  const bool is_lost = part_is_lost_ && misses_part();
  const bool goes_back = is_lost || (chosen && chosen->states != 0);
  if (mastership.starts_anew || goes_back) store_checker_.restarted(false);
  store_checker_.granted(term);
  record_checker_.granted(term);
  world_.give_name(master.node());
}

// Chosen anew, with states of workers, by a master that waited for the job and has it now.
void ProofCluster::watch_files(std::uint64_t term) {
  if (term == 0 || term != newest_term_) return;
  store_checker_.restarted(false);
  store_checker_.granted(term);
}

// What its workers have put is its successor's to erase.
bool ProofCluster::is_stale(const Mastership& mastership) const {
  return mastership.master->term() < newest_term_;
}

void ProofCluster::watch_start(Mastership& mastership, const Merger::Copy& start) {
  ProofMaster& master = *mastership.master;
  lease_checker_.begins(master.term());
  // One that was replaced as it began may have chosen before its successor put anything.
  const bool is_as_chosen = mastership.store_incarnation == servers_.incarnation();
  if (is_as_chosen && !is_stale(mastership)) {
    start_checker_.begins(start.state, master.chosen_files());
  }
  lineage_.begin(master.term(),
                 Checkpoint{start.version, start.weights, start.histories, start.state});
  MasterConfig config = master.config();
  config.term = config.first_run = master.term();
  config.first_version = Version{start.version.value + 1};
  config.model = problem_.layout().digest();
  const auto& files = master.chosen_files();
  config.seats = files ? files->states : 0;  // at most
  mastership.checker =
      std::make_unique<SessionChecker>(config, start.state, lineage_, violations_);
}

void ProofCluster::watch_merge(Mastership& mastership, const master_command::StartMerge& job,
                               const MergeResult& result, const Merger::Copy& now) {
  if (is_put_off(job, result)) return watch_put_off(mastership, job, result, now);
  watch_rejected(job, result);
  merges_.ahead += result.begun_ahead ? 1 : 0;
  const std::uint64_t term = mastership.master->term();
  const bool is_merged = result.rejected.size() < job.contributions.size();
  const bool in_memory = is_merged && are_in_memory(job, term);
  const UpdateSpec& update = scenario_.config.stages[job.stage].update;
  const bool is_coded = is_merged && update.codec.kind != CodecKind::kNone;
  merges_.in_memory += in_memory ? 1 : 0;
  merges_.coded += is_coded && !in_memory ? 1 : 0;
  merges_.in_parts += is_merged && !shards_.empty() ? 1 : 0;
  merges_.replicated += is_merged && update.replicated ? 1 : 0;
  if (is_merged && (job.is_last || !(in_memory || update.replicated))) {
    watch_published(mastership, result.version);
  }
  const auto shards = mastership.checker->shards_of(job, result.rejected);
  lineage_.merged({.term = mastership.master->term(),
                   .job = job,
                   .result = result,
                   .now = now,
                   .may_reject = is_stale(mastership),
                   .shards = shards});
}

// `now`: empty if nobody can read it.
void ProofCluster::watch_put_off(Mastership& mastership, const master_command::StartMerge& job,
                                 const MergeResult& result, const Merger::Copy& now) {
  watch_rejected(job, result);
  merges_.put_off += 1;
  lineage_.put_off({.term = mastership.master->term(),
                    .job = job,
                    .result = result,
                    .now = now,
                    .may_reject = is_stale(mastership),
                    .shards = {}});
}

// What comes of these may be published later, unless it is the last.
bool ProofCluster::are_in_memory(const master_command::StartMerge& job, std::uint64_t term) const {
  return std::ranges::all_of(job.contributions, [&](const auto& each) {
    return memory_.was_offered(contribution_key(term, each.worker.value));
  });
}

void ProofCluster::watch_published(const Mastership& mastership, Version version) {
  if (part_is_lost_) part_is_lost_ = misses_part();
  const bool may_be_lost = is_stale(mastership) || record_checker_.may_have_lost_data();
  store_checker_.published(mastership.master->term(), version.value, may_be_lost);
}

void ProofCluster::watch_command(Mastership& mastership, const MasterCommand& command) {
  const std::uint64_t term = mastership.master->term();
  if (std::holds_alternative<master_command::Finish>(command)) {
    record_checker_.master_ends(term);
    // One that was replaced says nothing of how the newest has ended.
    if (!is_stale(mastership)) ends_undisturbed_ = reaches_store(*mastership.master);
  }
  const auto* const erase = std::get_if<master_command::EraseWorker>(&command);
  if (erase == nullptr) return;
  record_checker_.told_to_erase(term, erase->worker.value);
  expect_erased(mastership, erase->worker.value);
}

// A restart of the store meanwhile takes a merge that the erasing waits for to its beginning, and a
// master that stands still does not erase.
void ProofCluster::expect_erased(Mastership& mastership, std::uint64_t worker) {
  const std::uint64_t incarnation = servers_.incarnation();
  const std::uint64_t freezes = mastership.master->node().process().freezes();
  world_.queue().after(kEraseTime, [this, &mastership, worker, incarnation, freezes] {
    const Process& process = mastership.master->node().process();
    if (servers_.incarnation() == incarnation && process.freezes() == freezes) {
      watch_erased(mastership, worker);
    } else {
      expect_erased(mastership, worker);
    }
  });
}

bool ProofCluster::reaches_store(ProofMaster& master) const {
  return master.node().process().running() && servers_.up() && master.clients().is_connected() &&
         client_faults_.error == 0.0;
}

// Whoever cannot reach the store erases later.
void ProofCluster::watch_erased(Mastership& mastership, std::uint64_t worker) {
  ProofMaster& master = *mastership.master;
  const bool is_over = !master.is_at_work() || is_stale(mastership);
  if (is_over || finished_) return;
  if (reaches_store(master)) record_checker_.check_erased(master.term(), worker);
}

void ProofCluster::watch_rejected(const master_command::StartMerge& job,
                                  const MergeResult& result) {
  for (const auto& each : job.contributions) {
    const bool rejected = std::ranges::find(result.rejected, each.worker) != result.rejected.end();
    if (rejected) feel(spoilt_, each.run.value);
  }
}

// A merge failed, or its process stopped or died in it: its version is published or not, and may be
// gone on from. What is in the store is held to what would have been merged.
void ProofCluster::watch_torn(Mastership& mastership, bool by_another) {
  const std::uint64_t term = mastership.master->term();
  const master_command::StartMerge* const job = mastership.master->order();
  ChunkedStore store(servers_.shared_map(), scenario_.config.job);
  for (const std::string& key : {weights_key(), checkpoint_key()}) {
    const auto now = read_copy(store, key, term);
    if (!now || lineage_.knows(term, now->version)) continue;
    if (job == nullptr) {
      lineage_.entered_stage(term, *now);
      continue;
    }
    MergeResult result{.version = now->version};
    bool may_be_lost = false;
    for (const auto& each : job->contributions) {
      const std::string name = contribution_key(term, each.worker.value);
      const auto contribution = read_copy(store, name, 0);
      const bool whole = memory_.contribution(name, each.run.value) ||
                         (contribution && contribution->version.value == each.run.value);
      if (!whole || !lineage_.is_finite(each.run)) result.rejected.push_back(each.worker);
      may_be_lost = may_be_lost || !whole;
    }
    // What was merged may be gone since then, too.
    const bool is_later = mastership.store_incarnation != servers_.incarnation();
    if (may_be_lost && (is_later || job->waits_for_lost)) {
      merges_.unseen += 1;
      lineage_.unseen(term, now->version, mastership.checker->shards_of(*job, {}), by_another);
      continue;
    }
    const auto shards = mastership.checker->shards_of(*job, result.rejected);
    lineage_.merged({.term = term,
                     .job = *job,
                     .result = result,
                     .now = *now,
                     .may_reject = is_stale(mastership),
                     .shards = shards,
                     .is_seen_by_another = by_another});
  }
}

// What a master that has yet to begin finds, others may have published who do not know it yet, or
// will never know. It is looked at as it is read: the store may lose it before that master begins.
void ProofCluster::watch_reading(const Mastership& reader) {
  if (reader.checker || reader.master->term() == 0) return;
  for (const auto& each : masters_) {
    // One whose merge has failed may have put its weights after all.
    const ProofMaster& master = *each->master;
    const bool may_have_put = master.is_publishing() || master.order() != nullptr;
    if (each.get() != &reader && may_have_put) watch_torn(*each, true);
  }
}

// A merge by parts whose version nobody can read whole any more, or not yet: its weights are taken
// from the next one.
void ProofCluster::watch_unseen(Mastership& mastership, const master_command::StartMerge* job,
                                const MergeResult& result) {
  const std::uint64_t term = mastership.master->term();
  if (job != nullptr && is_put_off(*job, result))
    return watch_put_off(mastership, *job, result, {});
  merges_.unseen += 1;
  if (job == nullptr) return lineage_.unseen_stage(term, result.version);
  const auto shards = mastership.checker->shards_of(*job, result.rejected);
  lineage_.unseen({.term = term,
                   .job = *job,
                   .result = result,
                   .now = {},
                   .may_reject = is_stale(mastership),
                   .shards = shards});
}

// A manifest came after the store had lost its chunks, and the master that wrote it stands still or
// is dead before it can put them again: there is no other version, and there are no files.
bool ProofCluster::misses_chunks(const ProofMaster& master) const {
  if (scenario_.has_weights_in_parts() || master.chosen_files()) return false;
  const std::string manifest = RecordKeys(scenario_.config.job, weights_key()).manifest();
  // It may have lost the manifest, too, since the master read it.
  const KvPtr found = get_whole(manifest);
  servers_.shared_map()->submit(found);
  return found->error || !record_checker_.is_whole(manifest);
}

// The record as this master has written it, or nothing.
std::optional<Merger::Copy> ProofCluster::read_copy(ParameterStore& store, const std::string& key,
                                                    std::uint64_t term) const {
  const auto reader = store.read(key);
  if (!reader || (*reader)->info().term != term) return std::nullopt;
  const RecordInfo& info = (*reader)->info();
  std::vector<float> record(info.element_count);
  if (!get_once(store, key, info.model, record)) {
    // A part that its server has lost may be gone on from by its copy.
    const bool has_copies = key == weights_key() && scenario_.has_weights_in_parts() &&
                            scenario_.shard_copies;
    if (!has_copies) return std::nullopt;
    const std::shared_ptr<ParameterStore> shared(&store, [](auto*) {});
    const auto read = read_all_parts(shared, problem_.layout(), record);
    if (!read || read->version != info.version) return std::nullopt;
  }
  Merger::Copy copy{Version{info.version}, {}, {}, info.state};
  const auto count = static_cast<std::ptrdiff_t>(problem_.size());
  copy.weights.assign(record.begin(), record.begin() + count);
  if (record.size() > problem_.size()) {
    copy.histories.emplace_back(record.begin() + count, record.end());
  }
  return copy;
}

}  // namespace speedo::sim
