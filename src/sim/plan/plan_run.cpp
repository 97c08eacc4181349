#include "sim/plan/plan_run.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::sim {

void Contributions::begin(WorkerId worker, RunId run, std::size_t pieces, bool is_in_memory) {
  records_[worker.value] = {run, std::vector<bool>(pieces), is_in_memory};
}

void Contributions::put(WorkerId worker, RunId run, std::size_t piece) {
  Record& record = records_.at(worker.value);
  SPEEDO_ASSERT(record.run == run && !record.there[piece]);
  record.there[piece] = true;
}

bool Contributions::is_there(WorkerId worker, RunId run, std::size_t piece) const {
  const auto found = records_.find(worker.value);
  return found != records_.end() && found->second.run == run && found->second.there[piece];
}

bool Contributions::is_in_memory(WorkerId worker) const {
  const auto found = records_.find(worker.value);
  return found != records_.end() && found->second.is_in_memory;
}

PlanRun::PlanRun(const RunParts& parts, const Order& order)
    : parts_(parts),
      order_(order),
      buckets_(buckets_of(parts.net)),
      here_(parts.pieces.count()),
      tally_(parts.pieces) {
  SPEEDO_ASSERT(order.steps >= 1);
}

void PlanRun::end_waiting(Instant& time) { time += parts_.queue.now() - waiting_since_; }

void PlanRun::start() {
  parts_.contributions.begin(order_.worker, order_.run, parts_.pieces.count(),
                             parts_.costs.shares_memory(order_.place));
  begin_waiting();
  const bool keeps_own = order_.has_weights && parts_.update.kind == UpdateKind::kElastic;
  if (keeps_own) {
    here_.assign(here_.size(), true);
    return begin_step();
  }
  parts_.costs.open(order_.place, 1, [self = shared_from_this()] { self->ask_for_weights(); });
}

// All at once. What is not worked on bucket by bucket has to be there before the first step:
// histories, and all of an elastic kind's weights.
void PlanRun::ask_for_weights() {
  if (parts_.update.kind != UpdateKind::kElastic) on_opened();
  const bool elastic = is_elastic(parts_.update.kind);
  const Pieces::Range first =
      elastic ? Pieces::Range{0, parts_.pieces.count()} : parts_.pieces.of_histories();
  for (std::size_t piece = 0; piece < parts_.pieces.count(); ++piece) {
    parts_.costs.read(order_.place, {.floats = parts_.pieces.merged_floats(piece)},
                      [self = shared_from_this(), piece, first] {
                        self->here_[piece] = true;
                        if (self->marks_.empty()) {
                          if (self->is_here(first)) self->begin_step();
                        } else if (self->waits_) {
                          self->go_on();
                        }
                      });
  }
  if (first.first == first.end) begin_step();
}

bool PlanRun::is_here(Pieces::Range range) {
  return std::all_of(here_.begin() + static_cast<std::ptrdiff_t>(range.first),
                     here_.begin() + static_cast<std::ptrdiff_t>(range.end),
                     [](bool here) { return here; });
}

// The rule of a full delta or an elastic kind is the worker's; that of gradients is the master's.
bool PlanRun::waits_for_whole_gradient() const {
  return parts_.net.clips && parts_.update.kind != UpdateKind::kGradientOnly;
}

void PlanRun::begin_step() {
  if (step_ == 0) end_waiting(exchanging_);
  drawn_seconds_ = parts_.costs.draw_step_seconds(order_.place);
  double part = 1.0;
  if (parts_.update.kind == UpdateKind::kGradientOnly) part -= parts_.net.update;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (parts_.pieces.products_of(bucket) > 0) part -= buckets_[bucket].product;
  }
  step_seconds_ = part * drawn_seconds_;
  if (step_ == 0) step_seconds_ += parts_.costs.cluster().worker.run_seconds;
  marks_.clear();
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (step_ == 0) marks_.push_back({buckets_[bucket].needed, true, bucket});
    const double final = waits_for_whole_gradient() ? 1.0 : buckets_[bucket].final;
    if (is_last_step()) marks_.push_back({final, false, bucket});
  }
  // Of one moment: first what is needed, in the net's order, then what is final.
  std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
    return a.at < b.at || (a.at == b.at && a.is_need && !b.is_need);
  });
  marks_.push_back({1.0, false, buckets_.size()});  // its end
  next_mark_ = 0;
  at_ = 0.0;
  begin_waiting();
  go_on();
}

// As far as it goes without computing or waiting.
void PlanRun::go_on() {
  while (next_mark_ < marks_.size()) {
    const Mark mark = marks_[next_mark_];
    if (mark.at > at_) {
      const double seconds = (mark.at - at_) * step_seconds_;
      at_ = mark.at;
      return compute(seconds);
    }
    if (!pass(mark)) return;
    ++next_mark_;
    if (mark.is_need && applies_steps()) return compute(apply_seconds(mark.bucket));
  }
  step_ += 1;
  if (step_ < order_.steps) return begin_step();
  is_computed_ = true;
  begin_waiting();
  commit_if_written();
}

void PlanRun::compute(double seconds) {
  begin_waiting();
  parts_.costs.compute(order_.place, seconds, [self = shared_from_this()] {
    self->end_waiting(self->computing_);
    self->go_on();
  });
}

// Of the rule, and before it of all products that the bucket's gradient is a mean of.
double PlanRun::apply_seconds(std::size_t bucket) const {
  const BucketCosts& costs = buckets_[bucket];
  const double rule = parts_.net.update * static_cast<double>(costs.parameters) /
                      static_cast<double>(parts_.net.parameters);
  const double products = static_cast<double>(parts_.pieces.products_of(bucket)) * costs.product;
  return (rule + products) * drawn_seconds_;
}

// False: it has to wait.
bool PlanRun::pass(const Mark& mark) {
  if (mark.bucket == buckets_.size()) return true;
  if (!mark.is_need) {
    send(tally_.add(mark.bucket));
    return true;
  }
  const bool needs_all = parts_.update.replicated && parts_.net.clips;
  const bool here = is_here(needs_all ? Pieces::Range{0, parts_.pieces.count()}
                                      : parts_.pieces.of_bucket(mark.bucket));
  if (!here && !waits_) begin_waiting();
  if (here && waits_) end_waiting(exchanging_);
  waits_ = !here;
  return here;
}

void PlanRun::send(const std::vector<std::size_t>& whole) {
  const bool reads_centre = parts_.update.kind == UpdateKind::kElastic;
  if (reads_centre && !centre_is_open_ && !whole.empty()) {
    centre_is_open_ = true;
    parts_.costs.open(order_.place, 1, [self = shared_from_this()] { self->on_opened(); });
  }
  for (const std::size_t piece : whole) {
    if (!reads_centre) {
      put(piece);
      continue;
    }
    parts_.costs.read(order_.place, {.floats = parts_.pieces.floats(piece)},
                      [self = shared_from_this(), piece] { self->put(piece); });
  }
}

void PlanRun::put(std::size_t piece) {
  parts_.costs.write(order_.place,
                     {.floats = parts_.pieces.floats(piece), .is_contribution = true},
                     [self = shared_from_this(), piece] {
                       self->parts_.contributions.put(self->order_.worker, self->order_.run,
                                                      piece);
                       self->written_ += 1;
                       self->commit_if_written();
                     });
}

void PlanRun::commit_if_written() {
  if (!is_computed_ || written_ < parts_.pieces.count()) return;
  parts_.costs.finish(order_.place, [self = shared_from_this()] {
    self->end_waiting(self->exchanging_);
    self->on_done();
  });
}

}  // namespace speedo::sim
