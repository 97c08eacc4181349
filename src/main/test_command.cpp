
#include <speedo/backend/backend.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "cli/options/read_options.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/report/console.hpp"
#include "cli/report/live_status.hpp"
#include "cli/flags/log_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/report/rate_meter.hpp"
#include "cli/report/report.hpp"
#include "cli/signals.hpp"
#include "core/net/net_outputs.hpp"
#include "core/solver_log.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"

namespace speedo {

namespace {

struct TestFlags {
  NetFlags net;
  ComputeFlags compute;
  int iterations = 0;
  LogFlags log;
  bool json = false;
};

TestFlags test_flags(const OptionValues& values) {
  TestFlags flags;
  flags.net = net_flags(values);
  flags.compute = compute_flags(values);
  values.get("iterations", flags.iterations);
  flags.log = log_flags(values);
  values.get("json", flags.json);
  return flags;
}

void log_left_out(const std::string& name, int count) {
  SPEEDO_INFO("{}: {} more values are left out", name, count);
}

void log_batch(int batch, const Net& net) {
  const auto show = [batch](int, const TestScores::Score& score) {
    SPEEDO_INFO("Batch {}, {} = {}", batch, score.name, number_text(score.value));
  };
  for_each_shown(read_outputs(net), {show, log_left_out});
}

void log_means(const TestScores& scores) {
  SPEEDO_INFO("Loss: {}", number_text(scores.loss));
  const auto show = [](int, const TestScores::Score& score) {
    std::string weighted;
    if (score.loss_weight != 0.0F) {
      weighted = fmt::format(" (* {:g} = {} loss)", score.loss_weight,
                             number_text(score.loss_weight * score.value));
    }
    SPEEDO_INFO("{} = {}{}", score.name, number_text(score.value), weighted);
  };
  for_each_shown(scores.scores, {show, log_left_out});
}

// Runs the batches, a line for each as it is done.
Result<TestScores> score(Net& net, int iterations, RateMeter& meter) {
  const auto images = static_cast<std::uint64_t>(images_per_pass(net));
  int batch = 0;
  meter.start(steady_clock().now(), 0, 0);
  const auto before_each = [&] {
    if (batch > 0) {
      log_batch(batch - 1, net);
      const auto done = static_cast<std::uint64_t>(batch);
      meter.update(steady_clock().now(), done, done * images);
      LiveStatus status{
          done,  static_cast<std::uint64_t>(iterations), meter.recent().iterations_per_second,
          false, meter.recent().images_per_second,       {},
          {}};
      show_live_line(format_live_status(status, terminal_width(), has_colour()));
    }
    ++batch;
    return stop_requested().has_value();
  };
  SPEEDO_ASSIGN(TestScores scores, run_test(net, iterations, before_each));
  if (scores.passes == iterations) log_batch(iterations - 1, net);
  const auto passes = static_cast<std::uint64_t>(scores.passes);
  meter.update(steady_clock().now(), passes, passes * images);
  return scores;
}

Report report_of(const TestScores& scores, const RateMeter& meter) {
  Report report;
  report.iterations = static_cast<std::uint64_t>(scores.passes);
  report.loss = scores.loss;
  report.test_loss = scores.loss;
  report.accuracy = scores.accuracy;
  report.seconds = meter.seconds();
  report.images_per_second = meter.overall().images_per_second;
  return report;
}

}  // namespace

Result<int> test_command(const CommandLine& line) {
  OptionValues values(Program::kTest);
  SPEEDO_ASSIGN(const Parsed parsed, read_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const TestFlags flags = test_flags(values);

  set_up_console(flags.log);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  const std::unique_ptr<SinkFactory> sinks = make_sinks();
  SPEEDO_INFO("Use CPU.");
  SPEEDO_INFO("Computing with {}", describe(compute));
  NetOptions options;
  options.backend = backend.get();
  options.feeds = feeds.get();
  options.sinks = sinks.get();
  options.trains = false;
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, build_net(flags.net, Phase::kTest, options));
  SPEEDO_INFO("Running for {} iterations.", flags.iterations);
  RateMeter meter;
  SPEEDO_ASSIGN(const TestScores scores, score(*net, flags.iterations, meter));
  if (scores.passes == 0) return Error{ErrorCode::kUnavailable, "stopped before the first batch"};
  SPEEDO_TRY(net->finish());
  log_means(scores);
  Report report = report_of(scores, meter);
  report.skipped_records = static_cast<std::uint64_t>(feeds->totals().skipped_records);
  add_peak_memory(report);
  print(report, flags.json);
  return 0;
}

}  // namespace speedo
