// From what is measured to the description of this machine:
//   step_seconds[t]    one trainer with t threads, nothing else, an exchange that takes no time
//   buckets, update    of one trainer of one thread: calibrate_buckets; histories: the solver's
//   product_seconds    of one thread: calibrate_products
//   sharing[n]         speed of each of n trainers of one thread, over that of one alone, by the
//                      time that they are on processors: other programs disturb it less
//   mixed              with as many trainers as cores that exchange: what all that they do takes of
//                      processors by the figures here, over what it took
//   rule_seconds       a merge of gradients beyond one of deltas, on processors
//   run_seconds        the cycle of one trainer of one thread that exchanges, beyond what the
//                      planner says of an asynchronous worker without it
//   crowded_seconds    the same of as many trainers as cores, beyond run_seconds
//   record_seconds     a record of a few floats, mean of reading and writing
//   ..._bytes_per_second        from the net's own record, after record_seconds
//   busy_..., client_...        the same of the processor's time of server and client
//   memory_bytes_...   copying weights of the net's size
//   [[codec]]          encoding with a residual and decoding, one chunk again and again
//   merge_seconds      what a merge takes beyond reading, adding and writing

#include "measure/calibrate/simulate_calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <speedo/core/update_rule.hpp>

#include "measure/calibrate/calibrate_buckets.hpp"
#include "measure/calibrate/calibrate_exchange.hpp"
#include "measure/calibrate/calibrate_steps.hpp"
#include "sim/plan/plan.hpp"
#include "train/job/job_nets.hpp"
#include "train/job/job_solver.hpp"

namespace speedo {

namespace {

// Of a worker's and the master's actors, beside the time on the wire; not measured. See
// bench_control in tests/bench.
constexpr double kActorSeconds = 100e-6;
// Rates of transfers are measured with at least so much: below, the fixed part is all there is.
constexpr std::uint64_t kRateFloatsMin = 65536;

// A step on a processor of its own takes as long by the clock, but for such a part.
constexpr double kDisturbed = 0.15;

// 1, 2, 4, ... and `max` itself.
std::set<int> doubled_up_to(int max) {
  std::set<int> counts = {max};
  for (int count = 1; count < max; count *= 2) counts.insert(count);
  return counts;
}

// Values at all of 1..last.first, in straight lines between those that are known.
std::vector<double> filled(const std::vector<std::pair<int, double>>& known) {
  std::vector<double> values;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto [to, value] = known[i];
    const int from = i == 0 ? to - 1 : known[i - 1].first;
    const double before = i == 0 ? value : known[i - 1].second;
    for (int n = from + 1; n <= to; ++n) {
      values.push_back(before + (value - before) * (n - from) / (to - from));
    }
  }
  return values;
}

class Calibrator {
 public:
  Calibrator(const CalibrateOptions& options, const PrivateRedis& redis)
      : options_(options), redis_(redis) {
    machine_.name = "here";
    machine_.cores = cores();
  }

  Result<Calibration> run() {
    sim::ClusterCosts& cluster = result_.cluster;
    cluster.title = options_.title;
    cluster.store.machine = cluster.master.machine = machine_.name;
    SPEEDO_TRY(measure_net());
    SPEEDO_TRY(measure_threads());
    cluster.machines = {machine_};
    SPEEDO_TRY(measure_buckets());
    SPEEDO_TRY(measure_store());
    SPEEDO_TRY(measure_sharing());
    cluster.machines = {machine_};
    SPEEDO_TRY(measure_cycles());
    measure_ways();
    return std::move(result_);
  }

 private:
  int cores() const { return options_.compute.threads; }
  ComputeOptions with_threads(int threads) const {
    ComputeOptions compute = options_.compute;
    compute.threads = threads;
    return compute;
  }
  void note(std::string what, double value, std::string unit) {
    result_.measurements.push_back({std::move(what), value, std::move(unit)});
  }

  Result<StepTimes> measure(int trainers, int threads, bool exchanging);
  Result<void> measure_net();
  Result<void> measure_threads();
  Result<void> measure_buckets();
  Result<void> measure_store();
  Result<void> measure_sharing();
  Result<void> measure_cycles();
  void measure_ways();
  void set_store(const ExchangeTimes& times, double floats);
  void set_merge_seconds(double measured, std::uint64_t floats);
  Result<double> planned_cycle(std::uint64_t workers);
  double known_processor_seconds() const;

  const CalibrateOptions& options_;
  const PrivateRedis& redis_;
  Calibration result_;
  sim::MachineCosts machine_;
  double trainer_seconds_ = 0.0;  // on a processor, of a step with one thread
};

Result<void> Calibrator::measure_net() {
  const TrainerParts parts = options_.parts.trainer(options_.compute);
  JobNetsOptions nets_options;
  nets_options.job = options_.job;
  SPEEDO_ASSIGN(const std::unique_ptr<JobNets> nets, JobNets::create(parts, nets_options));
  sim::NetCosts& net = result_.cluster.net;
  net.parameters = static_cast<std::uint64_t>(nets->layout().element_count());
  note("parameters of the net", static_cast<double>(net.parameters), "");
  return {};
}

Result<StepTimes> Calibrator::measure(int trainers, int threads, bool exchanging) {
  ComputeOptions compute = with_threads(threads);
  if (exchanging) compute.nice = kLocalComputeNice;
  SPEEDO_ASSIGN(const StepTimes times,
                measure_steps(options_.job, trainers, compute, options_.seconds_per_measurement,
                              options_.parts, exchanging ? &redis_ : nullptr));
  note(fmt::format("step, {} trainer{} of {} thread{}{}", trainers, trainers == 1 ? "" : "s",
                   threads, threads == 1 ? "" : "s", exchanging ? ", exchanging" : ""),
       times.mean_seconds * 1e3, "ms");
  return times;
}

Result<void> Calibrator::measure_threads() {
  std::vector<std::pair<int, double>> known;
  std::vector<ThreadTimes> steps;
  double clock_seconds = 0.0;
  for (const int threads : doubled_up_to(cores())) {
    SPEEDO_ASSIGN(const StepTimes times, measure(1, threads, false));
    known.emplace_back(threads, times.mean_seconds);
    steps.push_back({threads, times.mean_seconds});
    if (threads == 1) {
      clock_seconds = times.clock_seconds;
      machine_.step_spread = times.spread;
      trainer_seconds_ = times.trainer_seconds;
    }
    result_.cluster.net.batch = std::max<std::uint64_t>(1, times.samples);
  }
  note("spread of a step", machine_.step_spread * 100.0, "%");
  note("step, 1 trainer of 1 thread, by the clock", clock_seconds * 1e3, "ms");
  result_.doubts = doubts_of(steps, clock_seconds);
  machine_.step_seconds = filled(known);
  return {};
}

Result<void> Calibrator::measure_buckets() {
  SPEEDO_ASSIGN(BucketTimes times,
                speedo::measure_buckets(options_.job, with_threads(1),
                                        options_.seconds_per_measurement, options_.parts));
  sim::NetCosts& net = result_.cluster.net;
  net.buckets = std::move(times.buckets);
  net.update = times.update;
  net.clips = times.clips;
  result_.cluster.master.product_seconds = times.product_seconds;
  SPEEDO_ASSIGN(const caffe::SolverParameter solver, parse_solver(options_.job));
  SPEEDO_ASSIGN(net.histories, UpdateRule::history_count(solver));
  note("buckets", static_cast<double>(net.buckets.size()), "");
  note("the update rule's part of a step", net.update * 100.0, "%");
  note("gradients that are products, of a worker", times.product_seconds * 1e3, "ms");
  return {};
}

Result<void> Calibrator::measure_store() {
  const std::uint64_t floats = std::max(kRateFloatsMin, result_.cluster.net.parameters);
  SPEEDO_ASSIGN(const ExchangeTimes times,
                measure_exchange(options_.parts, redis_, options_.job, floats,
                                 options_.seconds_per_measurement));
  set_store(times, static_cast<double>(floats));
  set_merge_seconds(times.merge.seconds, floats);
  result_.cluster.master.rule_seconds =
      std::max(0.0, times.merge_gradients.client_seconds - times.merge.client_seconds);
  note("reading a record of a few floats", times.read_small.seconds * 1e3, "ms");
  note("writing one", times.write_small.seconds * 1e3, "ms");
  const std::string record = fmt::format("a record of {} floats", floats);
  note("reading " + record, times.read.seconds * 1e3, "ms");
  note("writing " + record, times.write.seconds * 1e3, "ms");
  note("Redis' processor time to read it", times.read.server_seconds * 1e3, "ms");
  note("Redis' processor time to write it", times.write.server_seconds * 1e3, "ms");
  note("client's processor time for both",
       (times.read.client_seconds + times.write.client_seconds) * 1e3, "ms");
  note("merging " + record, times.merge.seconds * 1e3, "ms");
  note("the rule on one, by the master", result_.cluster.master.rule_seconds * 1e3, "ms");
  note("merge arithmetic", times.add_bytes_per_second / 1e9, "GB/s");
  note("a message over the loopback, one way", times.message_seconds * 1e3, "ms");
  return {};
}

// With twice as many trainers as cores, too: what changing between them costs.
Result<void> Calibrator::measure_sharing() {
  std::vector<std::pair<int, double>> known = {{1, 1.0}};
  std::set<int> counts = doubled_up_to(cores());
  counts.insert(2 * cores());
  counts.erase(1);
  for (const int trainers : counts) {
    SPEEDO_ASSIGN(const StepTimes times, measure(trainers, 1, false));
    const double each = std::min(1.0, static_cast<double>(cores()) / trainers);
    known.emplace_back(trainers, each * trainer_seconds_ / times.trainer_seconds);
  }
  machine_.sharing = filled(known);
  return {};
}

// First what is known of processors' time, then by the clock what the planner does not know.
Result<void> Calibrator::measure_cycles() {
  sim::WorkerCosts& worker = result_.cluster.worker;
  SPEEDO_ASSIGN(const StepTimes crowd, measure(cores(), 1, true));
  const double mixed = known_processor_seconds() / crowd.processor_seconds;
  machine_.mixed = std::clamp(mixed, 0.1, 1.0);
  note("of processors in one, by the above", known_processor_seconds() * 1e3, "ms");
  note("of processors in one, measured", crowd.processor_seconds * 1e3, "ms");
  result_.cluster.machines = {machine_};
  SPEEDO_ASSIGN(const StepTimes alone, measure(1, 1, true));
  SPEEDO_ASSIGN(const double planned_alone, planned_cycle(1));
  worker.run_seconds = std::max(0.0, alone.cycle_seconds - planned_alone);
  note("a cycle, 1 trainer", alone.cycle_seconds * 1e3, "ms");
  note("the planner's, without what it does not know", planned_alone * 1e3, "ms");
  if (cores() == 1) return {};
  SPEEDO_ASSIGN(const double planned, planned_cycle(static_cast<std::uint64_t>(cores())));
  worker.crowded_seconds = std::max(0.0, crowd.cycle_seconds - planned);
  note(fmt::format("a cycle, {} trainers", cores()), crowd.cycle_seconds * 1e3, "ms");
  note("the planner's, without what it does not know", planned * 1e3, "ms");
  return {};
}

// Cycles were measured by way of Redis; a cluster of one machine exchanges in memory.
void Calibrator::measure_ways() {
  sim::ClusterCosts& cluster = result_.cluster;
  cluster.worker.shares_memory = true;
  cluster.codecs = measure_codecs(options_.seconds_per_measurement / 15.0);
  note("reading the weights in memory", cluster.worker.memory_bytes_per_second / 1e9, "GB/s");
  for (const sim::CodecCosts& codec : cluster.codecs) {
    note("codec " + codec.name + ", encoding", codec.encode_bytes_per_second / 1e9, "GB/s");
    note("codec " + codec.name + ", decoding", codec.decode_bytes_per_second / 1e9, "GB/s");
  }
}

// Of one run with the cores full: a step, reading and writing its record and having it merged.
double Calibrator::known_processor_seconds() const {
  const sim::ClusterCosts& cluster = result_.cluster;
  const double bytes = static_cast<double>(cluster.net.parameters) * 4.0;
  const sim::StoreCosts& store = cluster.store;
  const double records = 2.0 * bytes * (2.0 / cluster.worker.client_bytes_per_second +
                                        1.0 / store.busy_read_bytes_per_second +
                                        1.0 / store.busy_write_bytes_per_second) +
                         4.0 * store.busy_record_seconds;
  const double alone =
      trainer_seconds_ + records + bytes / cluster.master.merge_bytes_per_second;
  return alone / sim::thread_speed(machine_, machine_.cores);
}

// Of asynchronous workers that hear at once of their merges: what measure() lets trainers do.
Result<double> Calibrator::planned_cycle(std::uint64_t workers) {
  sim::ClusterCosts cluster = result_.cluster;
  cluster.network = {};
  cluster.machines.front().threads = 1;
  cluster.master.message_seconds = 0.0;
  sim::PlanOptions options;
  options.schedule.strategy.name = "async";
  options.schedule.update = default_update(options.schedule.strategy, workers);
  options.workers = workers;
  SPEEDO_ASSIGN(const sim::PlanResult plan, sim::plan(cluster, options));
  return static_cast<double>(workers) * plan.seconds / static_cast<double>(plan.contributions);
}

void Calibrator::set_store(const ExchangeTimes& times, double floats) {
  const double bytes = floats * 4.0;
  const auto rate = [bytes](double seconds, double fixed) {
    return bytes / std::max(seconds - fixed, seconds / 100.0);
  };
  sim::StoreCosts& store = result_.cluster.store;
  const auto mean = [](double a, double b) { return (a + b) / 2.0; };
  store.record_seconds = mean(times.read_small.seconds, times.write_small.seconds);
  store.read_bytes_per_second = rate(times.read.seconds, store.record_seconds);
  store.write_bytes_per_second = rate(times.write.seconds, store.record_seconds);
  store.busy_record_seconds =
      mean(times.read_small.server_seconds, times.write_small.server_seconds);
  store.busy_read_bytes_per_second = rate(times.read.server_seconds, store.busy_record_seconds);
  store.busy_write_bytes_per_second = rate(times.write.server_seconds, store.busy_record_seconds);
  result_.cluster.worker.client_bytes_per_second =
      2.0 * bytes / std::max(times.read.client_seconds + times.write.client_seconds, 1e-9);
  result_.cluster.worker.memory_bytes_per_second = times.copy_bytes_per_second;
  result_.cluster.network.local_latency_seconds = times.message_seconds + kActorSeconds / 2.0;
  result_.cluster.master.message_seconds = kActorSeconds / 2.0;
  result_.cluster.master.merge_bytes_per_second = times.add_bytes_per_second;
}

// What the measured merge took beyond what the model knows of.
void Calibrator::set_merge_seconds(double measured, std::uint64_t floats) {
  sim::ClusterCosts cluster = result_.cluster;
  cluster.net.parameters = floats;
  cluster.net.buckets.clear();
  const double known = sim::merge_seconds_alone(cluster, {}, 1);
  result_.cluster.master.merge_seconds = std::max(0.0, measured - known);
}

}  // namespace

Result<Calibration> calibrate(const CalibrateOptions& options) {
  SPEEDO_ASSIGN(const std::unique_ptr<PrivateRedis> redis, PrivateRedis::start());
  return Calibrator(options, *redis).run();
}

std::vector<std::string> doubts_of(const std::vector<ThreadTimes>& steps, double clock_seconds) {
  std::vector<std::string> doubts;
  const ThreadTimes& alone = steps.front();
  if (std::abs(clock_seconds - alone.seconds) > kDisturbed * alone.seconds) {
    doubts.push_back(fmt::format(
        "a step of one thread takes {:.4g} ms by the clock and {:.4g} ms of a processor: other "
        "programs disturb the measurements, so measure again when they are done",
        clock_seconds * 1e3, alone.seconds * 1e3));
  }
  for (const ThreadTimes& each : steps) {
    if (each.seconds <= alone.seconds) continue;
    doubts.push_back(fmt::format(
        "a step takes {:.4g} ms with {} threads and {:.4g} ms with one: the net is too small for "
        "more, or other programs have the processors",
        each.seconds * 1e3, each.threads, alone.seconds * 1e3));
  }
  return doubts;
}

std::string to_text(const Calibration& calibration) {
  std::string text = "Measured here\n";
  for (const Measurement& each : calibration.measurements) {
    text += fmt::format("  {:<42}{:>10.4g} {}\n", each.what, each.value, each.unit);
  }
  for (const std::string& doubt : calibration.doubts) text += "  In doubt: " + doubt + "\n";
  return text;
}

}  // namespace speedo
