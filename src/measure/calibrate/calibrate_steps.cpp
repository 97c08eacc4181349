#include "measure/calibrate/calibrate_steps.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>

#include "measure/calibrate/calibrate_centre.hpp"
#include "measure/processor_time.hpp"
#include "measure/step_timer.hpp"
#include "train/job/job_nets.hpp"
#include "train/trainer/trainer_engine.hpp"

namespace speedo {

namespace {

// Memory is touched for the first time, and the data read ahead.
constexpr int kWarmUpRuns = 3;
constexpr std::size_t kStepsMin = 5;

// One trainer's thread and what it found.
class Trainee {
 public:
  Trainee(const TrainerParts& parts, const JobSpec& job, CalibrateCentre& centre,
          std::uint64_t number, std::uint64_t count)
      : parts_(parts), job_(job), centre_(centre), number_(number), count_(count) {}
  void work_alone() { alone_ = true; }  // on one thread

  // All begin together, when the last one is ready, and go on until the same time.
  void work(std::barrier<>& ready, double seconds) {
    const TrainerEngine::Incarnation incarnation{
        WorkerId{number_}, contribution_key(centre_.term(), number_), job_, centre_.store()};
    auto engine = TrainerEngine::create(parts_, incarnation, progress_);
    if (!engine) error_ = engine.error();
    for (int i = 0; i < kWarmUpRuns && !error_; ++i) run(**engine);
    seconds_.clear();
    by_clock_.clear();
    cycles_.clear();
    on_processor_ = 0.0;
    ready.arrive_and_wait();
    const Instant end = steady_clock().now() + std::chrono::duration_cast<Instant>(
                                                   std::chrono::duration<double>(seconds));
    while (!error_ && (steady_clock().now() < end || seconds_.size() < kStepsMin)) run(**engine);
  }

  const std::optional<Error>& error() const { return error_; }
  const std::vector<double>& seconds() const { return seconds_; }
  const std::vector<double>& by_clock() const { return by_clock_; }
  const std::vector<double>& cycles() const { return cycles_; }
  std::uint64_t samples() const { return samples_; }
  double on_processor() const { return on_processor_; }

 private:
  void run(TrainerEngine& engine) {
    const Instant start = steady_clock().now();
    const double kept_before = count_ == 1 ? seconds_kept_waiting() : 0.0;
    const double before = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
    const auto report = engine.run(next_order(), [] { return false; });
    const double worked = processor_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
    const double took = std::chrono::duration<double>(steady_clock().now() - start).count();
    on_processor_ += worked;
    if (!report) {
      error_ = report.error();
      return;
    }
    const double waited = static_cast<double>(report->phases.data_us) / 1e6;
    const double computed = static_cast<double>(report->phases.compute_us()) / 1e6;
    seconds_.push_back((alone_ ? worked : computed) + waited);
    by_clock_.push_back(alone_ ? took : computed + waited);
    samples_ = report->samples;
    if (std::isfinite(report->loss)) merge(report->run);
    const double kept = count_ == 1 ? seconds_kept_waiting() - kept_before : 0.0;
    cycles_.push_back(std::chrono::duration<double>(steady_clock().now() - start).count() - kept);
  }

  void merge(RunId run) {
    const Result<Version> version = centre_.contributed(WorkerId{number_}, run);
    if (version) {
      version_ = *version;
    } else {
      error_ = version.error();
    }
  }

  TrainMessage next_order() {
    TrainMessage order;
    order.run = runs_;
    order.iteration = runs_;
    order.version = version_.value;
    order.first_step = runs_ * count_ + number_;
    order.next_step = order.first_step + count_;
    runs_ += 1;
    return order;
  }

  const TrainerParts& parts_;
  const JobSpec& job_;
  CalibrateCentre& centre_;
  const std::uint64_t number_, count_;
  std::atomic<std::uint64_t> progress_{0};
  std::uint64_t runs_ = 0;
  Version version_{0};
  std::vector<double> seconds_, by_clock_, cycles_;
  std::uint64_t samples_ = 0;
  double on_processor_ = 0.0;  // seconds of the trainer's thread
  bool alone_ = false;
  std::optional<Error> error_;
};

}  // namespace

StepTimes trimmed(std::vector<double> values) {
  SPEEDO_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t cut = values.size() / 10;
  const std::vector<double> kept(values.begin() + static_cast<std::ptrdiff_t>(cut),
                                 values.end() - static_cast<std::ptrdiff_t>(cut));
  double sum = 0.0, squares = 0.0;
  for (const double value : kept) sum += value;
  const double mean = sum / static_cast<double>(kept.size());
  for (const double value : kept) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(kept.size()));
  return {.mean_seconds = mean, .spread = mean > 0.0 ? deviation / mean : 0.0};
}

Result<StepTimes> measure_steps(const JobSpec& job, int trainers, const ComputeOptions& compute,
                                double seconds, const CalibrateParts& parts,
                                const PrivateRedis* redis) {
  SPEEDO_ASSERT(trainers >= 1);
  JobNetsOptions options;
  options.job = job;
  SPEEDO_ASSIGN(const std::unique_ptr<JobNets> nets, JobNets::create(parts.trainer({}), options));
  std::unique_ptr<CalibrateCentre> centre;
  if (redis == nullptr) {
    centre = make_still_centre(*nets);
  } else {
    SPEEDO_ASSIGN(centre, make_merging_centre(parts.open_store, *redis, *nets));
  }
  const TrainerParts trainee_parts = parts.trainer(compute);
  std::vector<std::unique_ptr<Trainee>> trainees;
  for (int i = 0; i < trainers; ++i) {
    trainees.push_back(std::make_unique<Trainee>(trainee_parts, job, *centre,
                                                 static_cast<std::uint64_t>(i),
                                                 static_cast<std::uint64_t>(trainers)));
    if (compute.threads == 1) trainees.back()->work_alone();
  }
  std::barrier<> ready(trainers + 1);
  const auto all_processors = [redis] {
    return processor_seconds(CLOCK_PROCESS_CPUTIME_ID) + (redis ? redis->cpu_seconds() : 0.0);
  };
  double before = 0.0;
  {
    std::vector<std::jthread> pool;
    for (const std::unique_ptr<Trainee>& trainee : trainees) {
      pool.emplace_back([&trainee, &ready, seconds] { trainee->work(ready, seconds); });
    }
    ready.arrive_and_wait();
    before = all_processors();
  }
  std::vector<double> all, by_clock, cycles;
  for (const std::unique_ptr<Trainee>& trainee : trainees) {
    if (trainee->error()) return *trainee->error();
    all.insert(all.end(), trainee->seconds().begin(), trainee->seconds().end());
    by_clock.insert(by_clock.end(), trainee->by_clock().begin(), trainee->by_clock().end());
    cycles.insert(cycles.end(), trainee->cycles().begin(), trainee->cycles().end());
  }
  const auto runs = static_cast<double>(all.size());
  StepTimes times = trimmed(std::move(all));
  times.clock_seconds = trimmed(std::move(by_clock)).mean_seconds;
  times.processor_seconds = (all_processors() - before) / runs;
  for (const std::unique_ptr<Trainee>& trainee : trainees) {
    times.trainer_seconds += trainee->on_processor() / runs;
  }
  times.cycle_seconds = undisturbed(std::move(cycles));
  times.samples = trainees.front()->samples();
  return times;
}

}  // namespace speedo
