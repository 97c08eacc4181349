#include "monitor/metrics_text.hpp"

#include "monitor/some_status.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST_CASE("Every family has its values, and histograms add up") {
  const JobStatus job = test::some_status();
  ProcessFigures process;
  process.version = "1.2.3";
  process.redis_errors = {{"timeout", 4}};
  const std::string text = metrics_text(&job, process);
  for (const char* line :
       {"speedo_build_info{version=\"1.2.3\"} 1", "speedo_iterations_total 500",
        "speedo_iteration 500", "speedo_redis_errors_total{kind=\"timeout\"} 4",
        "speedo_gradients_rejected_total{reason=\"damaged\"} 2",
        "speedo_gradients_rejected_total{reason=\"schedule\"} 3", "speedo_loss 0.25",
        "speedo_workers{state=\"training\"} 1", "speedo_workers{state=\"waiting\"} 0",
        "speedo_push_bytes_total 1000", "speedo_pull_bytes_total 2000",
        "speedo_skipped_records_total 7", "speedo_parser_deaths_total 4",
        "speedo_phase_seconds_total{phase=\"backward\"} 4", "speedo_gradient_staleness_count 2",
        "speedo_gradient_staleness_sum 5", "speedo_gradient_staleness_bucket{le=\"4\"} 1",
        "speedo_gradient_staleness_bucket{le=\"6\"} 2",
        "speedo_gradient_staleness_bucket{le=\"+Inf\"} 2",
        "speedo_step_duration_seconds_bucket{le=\"0.01\"} 0",
        "speedo_step_duration_seconds_bucket{le=\"0.025\"} 1"}) {
    INFO(line << "\n" << text);
    CHECK(has_line(text, line));
  }
  CHECK(text.find("speedo_test_loss") == std::string::npos);
  // Names of workers come and go without limit.
  CHECK(text.find("cluster.example.org") == std::string::npos);
}

TEST_CASE("Counters are of this master, whatever those before it have counted") {
  JobStatus job = test::some_status();
  job.earlier = {.merges = 400, .contributions = 1, .rejected = 2, .discarded = 1, .samples = 3,
                 .workers_joined = 1};
  job.progress.workers_joined = 5;
  const MasterProgress& all = job.progress;
  const std::string text = metrics_text(&job, {.version = "1", .redis_errors = {}});
  CHECK(has_line(text, "speedo_iterations_total 100"));
  CHECK(has_line(text, "speedo_iteration 500"));
  CHECK(has_line(text, "speedo_contributions_total " + std::to_string(all.contributions - 1)));
  CHECK(has_line(text, "speedo_samples_total " + std::to_string(all.samples - 3)));
  CHECK(has_line(text, "speedo_gradients_rejected_total{reason=\"damaged\"} 0"));
  CHECK(has_line(text, "speedo_gradients_rejected_total{reason=\"schedule\"} 2"));
  CHECK(has_line(text, "speedo_workers_joined_total 4"));
}

TEST_CASE("A master that has not begun tells of its process only") {
  const std::string text = metrics_text(nullptr, {.version = "1", .redis_errors = {}});
  CHECK(text.find("speedo_build_info") != std::string::npos);
  CHECK(text.find("speedo_iterations_total") == std::string::npos);
}

}  // namespace
}  // namespace speedo
