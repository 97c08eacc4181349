#include <cstdio>
#include <memory>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/flags/log_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/report/console.hpp"
#include "cli/report/live_status.hpp"
#include "cli/report/rate_meter.hpp"
#include "cli/report/report.hpp"
#include "cli/signals.hpp"
#include "core/net/net_outputs.hpp"
#include "core/solver/solver_log.hpp"
#include "data/parser/parser_processes.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "main/commands/test_evaluation.hpp"

namespace speedo {

namespace {

struct TestFlags {
  NetFlags net;
  EvaluationFlags evaluation;
  ComputeFlags compute;
  int iterations = 0;
  std::string output_root;  // empty: anywhere
  LogFlags log;
  bool json = false;
};

TestFlags test_flags(const OptionValues& values) {
  TestFlags flags;
  flags.net = net_flags(values);
  flags.evaluation = evaluation_flags(values);
  flags.compute = compute_flags(values);
  values.get("iterations", flags.iterations);
  values.get("output-root", flags.output_root);
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
  SPEEDO_INFO("Loss: {}", loss_text(scores));
  const auto show = [](int, const TestScores::Score& score) {
    std::string weighted;
    if (score.loss_weight != 0.0F) {
      weighted = fmt::format(" (* {:g} = {} loss)", score.loss_weight,
                             number_text(score.loss_weight * score.value));
    }
    SPEEDO_INFO("{} = {}{}", score.name, number_text(score.value), weighted);
  };
  for_each_shown(scores.scores, {show, log_left_out});
  if (!has_finite_losses(scores)) {
    SPEEDO_WARN("A loss is not finite: look for NaN in the weights and in the data");
  }
}

// The batches of a test, one after another.
class TestRun {
 public:
  // `evaluation` may be null.
  TestRun(Net& net, int iterations, TestEvaluation* evaluation)
      : net_(net), iterations_(iterations), evaluation_(evaluation) {}

  // A line for each batch as it is done.
  Result<TestScores> run() {
    meter_.start(steady_clock().now(), 0, 0);
    const auto before_each = [this] {
      end_batch();
      return stop_requested().has_value() || !evaluated_;
    };
    SPEEDO_ASSIGN(TestScores scores, run_test(net_, iterations_, before_each));
    if (scores.passes == iterations_) end_batch();
    SPEEDO_TRY(std::move(evaluated_));
    if (scores.passes > 0 && scores.passes < iterations_) {
      SPEEDO_WARN("Stopped after {} of {} batches: the scores, and reports, are of those alone",
                  scores.passes, iterations_);
    }
    return scores;
  }

  const RateMeter& meter() const { return meter_; }

 private:
  // Of the batch that ran last, if there was one; begins the next.
  void end_batch() {
    if (++batch_ == 0) return;
    log_batch(batch_ - 1, net_);
    if (evaluation_ != nullptr) evaluated_ = evaluation_->add_batch(net_, batch_ - 1);
    const auto done = static_cast<std::uint64_t>(batch_);
    meter_.update(steady_clock().now(), done, done * images_);
    const LiveStatus status{
        done,  static_cast<std::uint64_t>(iterations_), meter_.recent().iterations_per_second,
        false, meter_.recent().images_per_second,       {},
        {}};
    show_live_line(format_live_status(status, terminal_width(), has_colour()));
  }

  Net& net_;
  const int iterations_;
  TestEvaluation* const evaluation_;
  const std::uint64_t images_ = static_cast<std::uint64_t>(images_per_pass(net_));
  RateMeter meter_;
  Result<void> evaluated_;
  int batch_ = -1;  // that are done
};

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
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const TestFlags flags = test_flags(values);

  set_up_console(flags.log);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  SPEEDO_ASSIGN(const std::unique_ptr<OutputRoot> outputs, confine_outputs(flags.output_root));
  const std::unique_ptr<SinkFactory> sinks = make_sinks();
  SPEEDO_INFO("{}", caffe_sentence(compute));
  SPEEDO_INFO("Computing with {}", describe(compute));
  NetOptions options;
  options.backend = backend.get();
  options.feeds = feeds.get();
  options.sinks = sinks.get();
  options.trains = false;
  options.logs_set_up = true;
  SPEEDO_ASSIGN(const std::unique_ptr<TestEvaluation> evaluation,
                TestEvaluation::create(flags.evaluation, flags.net));
  if (evaluation != nullptr) options.kept_blobs = evaluation->kept_blobs();
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, build_net(flags.net, Phase::kTest, options));
  if (evaluation != nullptr) SPEEDO_TRY(evaluation->begin(*net));
  SPEEDO_INFO("Running for {} iterations.", flags.iterations);
  TestRun run(*net, flags.iterations, evaluation.get());
  SPEEDO_ASSIGN(const TestScores scores, run.run());
  if (scores.passes == 0) return Error{ErrorCode::kUnavailable, "stopped before the first batch"};
  SPEEDO_TRY(net->finish());
  log_means(scores);
  if (evaluation != nullptr) {
    SPEEDO_TRY(evaluation->finish());
    clear_live_line();
    if (!flags.json) std::fputs(evaluation->text().c_str(), stdout);
  }
  Report report = report_of(scores, run.meter());
  report.skipped_records = static_cast<std::uint64_t>(feeds->totals().skipped_records);
  report.parser_deaths = static_cast<std::uint64_t>(parser_totals().died);
  add_peak_memory(report);
  print(report, flags.json);
  return 0;
}

}  // namespace speedo
