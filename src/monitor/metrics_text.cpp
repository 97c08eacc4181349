#include "monitor/metrics_text.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace speedo {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Families = std::vector<MetricFamily>;
using Labels = std::vector<ClientMetric::Label>;

// Of one name, with a value for each set of labels.
class Family {
 public:
  Family(Families& all, MetricType type, std::string name, std::string help)
      : family_(all.emplace_back()) {
    family_.type = type;
    family_.name = std::move(name);
    family_.help = std::move(help);
  }
  void add(double value, Labels labels = {}) {
    ClientMetric& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    if (family_.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
  }
  void add(std::uint64_t value, Labels labels = {}) {
    add(static_cast<double>(value), std::move(labels));
  }

 private:
  MetricFamily& family_;
};

template <class Number>
void add_counter(Families& all, const char* name, const char* help, Number value) {
  Family(all, MetricType::Counter, name, help).add(value);
}

template <class Number>
void add_gauge(Families& all, const char* name, const char* help, Number value) {
  Family(all, MetricType::Gauge, name, help).add(value);
}

// Not there while nothing is known.
void add_gauge_if(Families& all, const char* name, const char* help,
                  const std::optional<float>& value) {
  if (value) add_gauge(all, name, help, static_cast<double>(*value));
}

template <std::size_t kBounds>
void add_histogram(Families& all, const char* name, const char* help,
                   const Histogram<kBounds>& seen) {
  MetricFamily& family = all.emplace_back();
  family.type = MetricType::Histogram;
  family.name = name;
  family.help = help;
  ClientMetric::Histogram& histogram = family.metric.emplace_back().histogram;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= kBounds; ++i) {
    count += seen.counts()[i];
    histogram.bucket.push_back(
        {count, i < kBounds ? seen.bounds()[i] : std::numeric_limits<double>::infinity()});
  }
  histogram.sample_count = count;
  histogram.sample_sum = seen.sum();
}

// Counters are of this process alone, as Prometheus takes them: those of the training would go back
// a little, and count again, where a master goes on from a checkpoint.
void add_progress(Families& all, const JobStatus& job) {
  const MasterProgress& progress = job.progress;
  Family(all, MetricType::Gauge, "speedo_job_info", "What is trained; always 1.")
      .add(1.0, {{"job", job.job}, {"schedule", job.schedule}, {"training", job.training}});
  add_counter(all, "speedo_iterations_total", "Merged updates of the weights.",
              progress.merges - job.earlier.merges);
  add_gauge(all, "speedo_iteration", "Iteration that the weights are of.", progress.iteration);
  add_gauge(all, "speedo_max_iteration", "Iteration at which training ends.", job.max_iteration);
  add_counter(all, "speedo_contributions_total", "Contributions of workers that were merged.",
              progress.contributions - job.earlier.contributions);
  add_counter(all, "speedo_samples_total", "Samples of merged contributions.",
              progress.samples - job.earlier.samples);
  Family rejected(all, MetricType::Counter, "speedo_gradients_rejected_total",
                  "Contributions that were not merged, by reason.");
  rejected.add(progress.rejected - job.earlier.rejected, {{"reason", "damaged"}});
  rejected.add(progress.discarded - job.earlier.discarded, {{"reason", "schedule"}});
  add_counter(all, "speedo_messages_ignored_total",
              "Messages of workers that were not acted on: late, repeated, or of a stranger.",
              progress.ignored);
  add_gauge_if(all, "speedo_loss", "Mean training loss of the last merge.",
               progress.last_loss);
  add_gauge_if(all, "speedo_test_accuracy", "Accuracy of the last test.", progress.accuracy);
  add_gauge_if(all, "speedo_test_loss", "Loss of the last test.", progress.test_loss);
  add_gauge(all, "speedo_training",
            "1 while workers train, 0 while they are waited for or it is over.",
            progress.training && !progress.paused ? 1.0 : 0.0);
  add_gauge(all, "speedo_store_up", "0 while Redis does not answer.", job.store_away ? 0.0 : 1.0);
}

void add_workers(Families& all, const JobStatus& job) {
  std::array<std::uint64_t, 3> counts{};
  for (const WorkerStatus& row : job.workers) {
    const auto state = static_cast<std::size_t>(row.state);
    if (state < counts.size()) counts[state] += 1;
  }
  Family workers(all, MetricType::Gauge, "speedo_workers", "Workers, by what they do.");
  for (std::size_t state = 0; state < counts.size(); ++state) {
    workers.add(counts[state], {{"state", to_string(static_cast<WorkerState>(state))}});
  }
  add_counter(all, "speedo_workers_joined_total", "Workers that got ready.",
              job.progress.workers_joined - job.earlier.workers_joined);
  add_counter(all, "speedo_push_bytes_total", "Bytes of contributions that workers stored.",
              job.progress.traffic.pushed_bytes);
  add_counter(all, "speedo_pull_bytes_total", "Bytes of weights that workers read.",
              job.progress.traffic.pulled_bytes);
  add_counter(all, "speedo_skipped_records_total", "Bad records that workers left out.",
              job.progress.read_faults.skipped_records);
  add_counter(all, "speedo_parser_deaths_total", "Parser processes of workers that ended early.",
              job.progress.read_faults.parser_deaths);
  Family phases(all, MetricType::Counter, "speedo_phase_seconds_total",
                "Where the workers' time went, all together.");
  const PhaseTimes& times = job.progress.phases;
  const std::pair<const char*, std::uint64_t> parts[] = {{"data", times.data_us},
                                                         {"forward", times.forward_us},
                                                         {"backward", times.backward_us},
                                                         {"exchange", times.exchange_us},
                                                         {"wait", times.wait_us}};
  for (const auto& [phase, microseconds] : parts) {
    phases.add(static_cast<double>(microseconds) / 1e6, {{"phase", phase}});
  }
  add_histogram(all, "speedo_gradient_staleness",
                "Merges between reading the weights and merging a contribution.", job.staleness);
  add_histogram(all, "speedo_step_duration_seconds",
                "Time of a worker's run: a step, or as many as --train says.", job.run_seconds);
}

void add_process(Families& all, const ProcessFigures& process) {
  Family(all, MetricType::Gauge, "speedo_build_info", "The program; always 1.")
      .add(1.0, {{"version", process.version}});
  Family errors(all, MetricType::Counter, "speedo_redis_errors_total",
                "Failed attempts of this process to use Redis, by kind.");
  for (const ProcessFigures::Errors& each : process.redis_errors) {
    errors.add(each.count, {{"kind", each.kind}});
  }
  add_counter(all, "process_cpu_seconds_total", "Processor time of this process.",
              process.cpu_seconds);
  add_gauge(all, "process_start_time_seconds", "When this process began, since 1970.",
            process.start_seconds);
  if (process.resident_bytes > 0) {
    add_gauge(all, "process_resident_memory_bytes", "Memory of this process.",
              static_cast<double>(process.resident_bytes));
  }
}

}  // namespace

std::string metrics_text(const JobStatus* job, const ProcessFigures& process) {
  Families all;
  all.reserve(64);  // a Family refers to its place
  add_process(all, process);
  if (job != nullptr) {
    add_progress(all, *job);
    add_workers(all, *job);
  }
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace speedo
