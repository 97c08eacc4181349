#include "measure/calibrate/calibrate_buckets.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>

#include "measure/calibrate/calibrate_centre.hpp"
#include "measure/calibrate/calibrate_products.hpp"
#include "measure/step_timer.hpp"
#include "train/job/job_nets.hpp"
#include "train/trainer/learner.hpp"
#include "train/trainer/trainer_engine.hpp"

namespace speedo {

namespace {

constexpr int kUnmeasuredRuns = 3;  // Memory is touched for the first time.
constexpr int kMeasuredRunsMin = 5;

double seconds_between(Instant start, Instant end) {
  return std::chrono::duration<double>(end - start).count();
}

// The moments of one mini-batch, in seconds since its beginning, by the bucket's offset.
struct Moments {
  std::map<std::int64_t, double> needed, final;
  std::map<std::int64_t, std::int64_t> counts;
  double computed = 0.0;  // the passes' end
  double rule = 0.0;      // in the hooks
  bool clips = false;
};

// A net's learner that notes when it asks and reports.
class NotingLearner : public Learner {
 public:
  NotingLearner(std::unique_ptr<Learner> learner, Moments& moments)
      : learner_(std::move(learner)), moments_(moments) {}

  const ParameterLayout& layout() const override { return learner_->layout(); }
  Backend& backend() override { return learner_->backend(); }
  Arena& weights() override { return learner_->weights(); }
  Arena& gradients() override { return learner_->gradients(); }
  void set_batch_span(const BatchSpan& span) override { learner_->set_batch_span(span); }
  std::uint64_t batch_size() const override { return learner_->batch_size(); }
  std::chrono::nanoseconds data_waited() const override { return learner_->data_waited(); }
  std::chrono::nanoseconds gone_forward() const override { return learner_->gone_forward(); }
  void keep_statistics() override { learner_->keep_statistics(); }
  void put_statistics_change_into_gradients() override {
    learner_->put_statistics_change_into_gradients();
  }

  Result<float> accumulate_gradients(int passes, const Hooks& hooks) override {
    moments_ = {};
    const Instant start = steady_clock().now();
    const auto now = [start] { return seconds_between(start, steady_clock().now()); };
    Hooks noting = hooks;
    noting.weights_needed = [&](const Bucket& bucket) -> Result<void> {
      if (bucket.count < layout().element_count()) moments_.needed.emplace(bucket.offset, now());
      return hooks.weights_needed ? hooks.weights_needed(bucket) : Result<void>();
    };
    moments_.clips = hooks.gradient_ready == nullptr;
    noting.gradient_ready = [&](const Bucket& bucket, const StreamEvent& final) {
      backend().device().wait(final);
      const double ready = now();
      if (hooks.gradient_ready) hooks.gradient_ready(bucket, final);
      moments_.final[bucket.offset] = now();
      moments_.counts[bucket.offset] = bucket.count;
      moments_.rule += now() - ready;
    };
    auto loss = learner_->accumulate_gradients(passes, noting);
    moments_.computed = now();
    return loss;
  }

 private:
  const std::unique_ptr<Learner> learner_;
  Moments& moments_;
};

// Parts of mini-batches' times, over all runs.
struct Parts {
  std::map<std::int64_t, std::vector<double>> needed, final;
  std::vector<double> update;
  std::vector<double> wholes;  // in seconds

  void add(const Moments& moments, double seconds) {
    wholes.push_back(seconds);
    for (const auto& [offset, at] : moments.needed) needed[offset].push_back(at / seconds);
    for (const auto& [offset, at] : moments.final) final[offset].push_back(at / seconds);
    const double behind = std::max(0.0, seconds - moments.computed);
    update.push_back((moments.rule + behind) / seconds);
  }
};

double part_of(const std::vector<double>& values) {
  return std::clamp(median(values), 0.0, 1.0);
}

// Parameters that no layer trains belong to the bucket before them.
BucketTimes make_bucket_times(const Parts& parts, const Moments& last, std::int64_t parameters) {
  BucketTimes times;
  times.clips = last.clips;
  times.update = part_of(parts.update);
  for (auto place = parts.final.begin(); place != parts.final.end(); ++place) {
    const auto next = std::next(place);
    const std::int64_t begin = place == parts.final.begin() ? 0 : place->first;
    const std::int64_t end = next == parts.final.end() ? parameters : next->first;
    const auto needed = parts.needed.find(place->first);
    sim::BucketCosts bucket;
    bucket.parameters = static_cast<std::uint64_t>(end - begin);
    bucket.final = part_of(place->second);
    if (needed != parts.needed.end()) bucket.needed = part_of(needed->second);
    times.buckets.push_back(bucket);
  }
  return times;
}

// Of each bucket one product: a layer has one that can travel as factors.
Result<void> add_products(Backend& backend, const JobNets& nets, double step_seconds,
                          double seconds, BucketTimes& times) {
  for (const FactorShape& shape : nets.factor_shapes()) {
    const std::int64_t offset = nets.layout().slots()[shape.slot].offset;
    std::int64_t end = 0;
    const auto bucket = std::ranges::find_if(times.buckets, [&](const sim::BucketCosts& each) {
      end += static_cast<std::int64_t>(each.parameters);
      return offset < end;
    });
    SPEEDO_ASSERT(bucket != times.buckets.end());
    if (bucket->factors.rows > 0) continue;
    SPEEDO_ASSIGN(const double product, measure_product(backend, shape, seconds));
    bucket->factors = shape;
    bucket->product = std::min(product / step_seconds, 1.0);
    times.product_seconds += product;
  }
  return {};
}

}  // namespace

Result<BucketTimes> measure_buckets(const JobSpec& job, const ComputeOptions& compute,
                                    double seconds, const CalibrateParts& parts) {
  Moments moments;
  TrainerParts noting = parts.trainer(compute);
  JobNetsOptions nets_options;
  nets_options.job = job;
  SPEEDO_ASSIGN(const std::unique_ptr<JobNets> nets, JobNets::create(noting, nets_options));
  const std::unique_ptr<CalibrateCentre> centre = make_still_centre(*nets);
  noting.make_learner = [&](const LearnerOptions& options) -> Result<std::unique_ptr<Learner>> {
    SPEEDO_ASSIGN(std::unique_ptr<Learner> learner,
                  make_net_learner(parts.trainer(compute), options));
    return std::unique_ptr<Learner>(
        std::make_unique<NotingLearner>(std::move(learner), moments));
  };
  std::atomic<std::uint64_t> progress{0};
  SPEEDO_ASSIGN(const std::unique_ptr<TrainerEngine> engine,
                TrainerEngine::create(noting, {WorkerId{0}, contribution_key(0, 0), job,
                                               centre->store()}, progress));
  Parts all;
  const Instant begin = steady_clock().now();
  for (int i = 0; i < kUnmeasuredRuns + kMeasuredRunsMin ||
                  seconds_between(begin, steady_clock().now()) < seconds; ++i) {
    TrainMessage order;
    order.run = order.iteration = order.first_step = static_cast<std::uint64_t>(i);
    order.next_step = order.first_step + 1;
    SPEEDO_ASSIGN(const RunReport report, engine->run(order, [] { return false; }));
    const PhaseTimes& phases = report.phases;
    const double whole = static_cast<double>(phases.compute_us() + phases.data_us) / 1e6;
    if (i >= kUnmeasuredRuns && whole > 0.0) all.add(moments, whole);
  }
  BucketTimes times = make_bucket_times(all, moments, nets->layout().element_count());
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, noting.make_backend());
  SPEEDO_TRY(add_products(*backend, *nets, median(all.wholes), seconds / 15.0, times));
  return times;
}

}  // namespace speedo
