#include "sim/proof/proof_shard.hpp"

#include <utility>

#include "store/chunked_store.hpp"

namespace speedo::sim {
namespace {

constexpr std::chrono::seconds kShardStoreTimeout{600};  // the programs' default

}  // namespace

ProofShard::ProofShard(Setting setting) : setting_(std::move(setting)), random_(setting_.seed) {}

ProofShard::~ProofShard() { unwind(); }

void ProofShard::unwind() {
  if (!platform_) return;
  node_->process().kill();
  platform_->unwind();
  job_.reset();
}

void ProofShard::attach(EventQueue& queue, WorkerNode& node, const std::string& name) {
  node_ = &node;
  platform_ = std::make_unique<ProcessPlatform>(
      queue, node.process(), ProcessPlatform::Setting{.name = name, .seed = random_.next()});
  clients_ = std::make_unique<StoreClients>(setting_.servers, *platform_, random_,
                                            setting_.scenario.merge_time);
  clients_->on_executed = [this](std::size_t server, const KvOperation& operation) {
    const std::uint64_t term = operation.master ? operation.master->term : term_;
    setting_.on_executed(term, server, operation);
  };
  TrainerParts parts;
  parts.platform = platform_.get();
  parts.make_backend = setting_.make_backend;
  const auto open_store = [this](const StoreAddress&, const std::string& job) {
    return Result<std::shared_ptr<ParameterStore>>(
        std::make_shared<ChunkedStore>(clients_->map(), job));
  };
  job_ = std::make_unique<JobPart>(parts, open_store,
                                   WelcomedStore::Options{.store_override = {},
                                                          .store_timeout = kShardStoreTimeout,
                                                          .platform = platform_.get()},
                                   MergerConfig{.ahead_bytes_min = 0, .threads = 1});
  job_->answer_to([this](const PartAnswer& each) { answer(each); });
  node.on_order = [this](const PartOrder& order) { take(order); };
}

void ProofShard::prepare(const WelcomeMessage& welcome,
                         std::function<void(Result<Digest>)> done) {
  term_ = std::max(term_, welcome.term);
  open_ = false;
  merging_.reset();
  job_->prepare(welcome, std::move(done));
}

void ProofShard::run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) {
  job_->run(order, std::move(done));
}

void ProofShard::save_state(const SaveStateMessage& order, std::function<void(Result<void>)> done) {
  job_->save_state(order, std::move(done));
}

void ProofShard::look_for_end(std::uint64_t term, std::function<void(bool)> done) {
  job_->look_for_end(term, std::move(done));
}

void ProofShard::cancel() {
  open_ = false;
  merging_.reset();
  job_->cancel();
}

void ProofShard::take(const PartOrder& order) {
  if (std::holds_alternative<part_order::Open>(order)) open_ = true;
  if (const auto* const merge = std::get_if<part_order::Merge>(&order)) {
    merging_ = merge->id;
    if (strike_) {
      MergeStrike due = *std::exchange(strike_, std::nullopt);
      clients_->strike_at_operation(
          due.operation, [strike = std::move(due.strike)](const KvOperation&) { strike(); });
    }
  }
  const auto* const decision = std::get_if<part_order::Decide>(&order);
  if (decision != nullptr && merging_ == decision->id) {
    if (decision->commit) setting_.on_merged();
    merging_.reset();
  }
  job_->take(order);
}

void ProofShard::answer(const PartAnswer& answer) {
  // What it has made of a step is decided on by nobody.
  const auto* const written = std::get_if<part_answer::Written>(&answer);
  const bool is_step = written != nullptr && !setting_.scenario.has_weights_in_parts() &&
                       merging_ == written->id;
  if (is_step) {
    setting_.on_merged();
    merging_.reset();
  }
  node_->say(answer);
}

void ProofShard::cancel_strike() {
  strike_.reset();
  clients_->cancel_strike();
}

}  // namespace speedo::sim
