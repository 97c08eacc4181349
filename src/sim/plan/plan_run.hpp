#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/train/update.hpp>

#include "sim/plan/cost_model.hpp"
#include "sim/plan/plan_pieces.hpp"

namespace speedo::sim {

// The contributions in a plan's store: which pieces of which run are there.
class Contributions {
 public:
  void begin(WorkerId worker, RunId run, std::size_t pieces, bool is_in_memory = false);
  void put(WorkerId worker, RunId run, std::size_t piece);
  bool is_there(WorkerId worker, RunId run, std::size_t piece) const;
  // The worker's newest lies in memory that it shares with the master.
  bool is_in_memory(WorkerId worker) const;

 private:
  struct Record {
    RunId run;
    std::vector<bool> there;
    bool is_in_memory = false;
  };
  std::map<std::uint64_t, Record> records_;  // by worker
};

// What all runs of a plan have in common.
struct RunParts {
  EventQueue& queue;
  CostModel& costs;
  const NetCosts& net;
  const UpdateSpec& update;
  const Pieces& pieces;
  Contributions& contributions;
};

// One run of a worker, in the order of production's trainer (train/trainer/trainer_engine): weights
// are asked for all at once, and each bucket waited for where the first mini-batch first needs it;
// of the last one, pieces go out when all their buckets are final, while others are computed; the
// record is finished behind them. A rule that clips holds all of them back to the end. Elastic
// kinds keep their weights: the centre's are read, piece by piece, to where gradients are final,
// and the difference goes out; SpeeDO's form reads what the master made of its weights first. With
// replicated updates (train/replicas) what is read is a step, and each bucket's weights are made of
// it where they are needed.
//
// Assumes: a bucket takes the same part of every mini-batch's time; weights are not overwritten
// while they are read; what has come is noticed at once; of replicated updates, a newcomer reads no
// more than a step, and nothing of the next one is read or worked out before it is complete.
class PlanRun : public std::enable_shared_from_this<PlanRun> {
 public:
  struct Order {
    std::size_t place = 0;
    WorkerId worker;
    RunId run;
    std::uint64_t steps = 1;     // mini-batches
    bool has_weights = false;    // of its own: those of an elastic kind that are not lost
  };
  PlanRun(const RunParts& parts, const Order& order);

  // Whose numbers the run is computed with is known: its weights, or the centre's, were opened.
  std::function<void()> on_opened;
  std::function<void()> on_done;
  void start();

  Instant computing() const { return computing_; }
  Instant exchanging() const { return exchanging_; }

 private:
  // A moment of a mini-batch.
  struct Mark {
    double at = 0.0;  // part of its time
    bool is_need = false;
    std::size_t bucket = 0;
  };

  bool is_last_step() const { return step_ + 1 == order_.steps; }
  bool waits_for_whole_gradient() const;
  void ask_for_weights();
  void begin_step();
  void go_on();
  void compute(double seconds);
  bool applies_steps() const { return parts_.update.replicated && order_.has_weights; }
  double apply_seconds(std::size_t bucket) const;
  bool pass(const Mark& mark);
  bool is_here(Pieces::Range range);
  void send(const std::vector<std::size_t>& whole);
  void put(std::size_t piece);
  void commit_if_written();
  void begin_waiting() { waiting_since_ = parts_.queue.now(); }
  void end_waiting(Instant& time);

  const RunParts parts_;
  const Order order_;
  const std::vector<BucketCosts> buckets_;
  std::vector<bool> here_;     // pieces of the weights
  Pieces::Tally tally_;
  std::uint64_t step_ = 0;
  double drawn_seconds_ = 0.0;  // of the mini-batch under way, alone
  double step_seconds_ = 0.0;   // of it, without what others do
  std::vector<Mark> marks_;    // of it
  std::size_t next_mark_ = 0;
  double at_ = 0.0;            // part of it that is done
  bool waits_ = false;         // for a bucket of the weights
  bool centre_is_open_ = false;
  bool is_computed_ = false;
  std::size_t written_ = 0;    // pieces
  Instant waiting_since_{0};
  Instant computing_{0}, exchanging_{0};
};

}  // namespace speedo::sim
