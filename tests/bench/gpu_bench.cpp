// Training steps of nets on a GPU: images a second, as the product makes them (forward, backward,
// the look for infinities, SGD with momentum and weight decay), on noise.
//
//   gpu_bench [--gpu N | --cpu] [--precision f32,tf32,bf16,fp16] [--deterministic] [--seconds S]
//             NET.prototxt...
//
// The nets read Input and DummyData layers, as bench_nets.py writes them; --cpu tries the program
// where there is no GPU. A table, and last one line of JSON: {"device": NAME, "nets": [{"net":
// FILE, "precision": P, "batch": N, "step_ms": MEDIAN, "images_per_second": R, "flops_per_second":
// F, "planned_mib": M, "kernels": [...]}]}. Without a GPU it says so and ends with 77.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/random.hpp>
#include <speedo/core/net_file.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/cpu/cpu_backend.hpp>
#include <speedo/gpu/gpu_backend.hpp>

#include "caffe.pb.h"
#include "core/kept_values.hpp"
#include "core/solver/quiet_steps.hpp"

namespace speedo::bench {
namespace {

constexpr int kSkipped = 77;
constexpr int kWarmUpSteps = 5;
constexpr int kStepsMin = 5, kStepsMax = 1000;

struct GpuBenchFlags {
  int gpu = 0;
  bool on_cpu = false, is_deterministic = false;
  double seconds = 2.0;
  std::vector<std::string> precisions{"f32"};
  std::vector<std::filesystem::path> nets;
};

[[noreturn]] void end_with(const std::string& message, int code) {
  std::fprintf(stderr, "gpu_bench: %s\n", message.c_str());
  std::exit(code);
}

template <class Value>
Value expect(Result<Value> result) {
  if (!result) end_with(result.error().message, 1);
  return std::move(*result);
}
void expect(const Result<void>& result) {
  if (!result) end_with(result.error().message, 1);
}

std::vector<std::string> at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

GpuPrecision precision_of(const std::string& word) {
  if (word == "f32") return GpuPrecision::kFloat32;
  if (word == "tf32") return GpuPrecision::kTf32;
  if (word == "bf16") return GpuPrecision::kBfloat16;
  if (word == "fp16") return GpuPrecision::kFloat16;
  end_with("--precision takes f32, tf32, bf16 and fp16, not '" + word + "'", 2);
}

GpuBenchFlags read_flags(const std::vector<std::string>& words) {
  GpuBenchFlags flags;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&] {
      if (i + 1 == words.size()) end_with(word + " takes a value", 2);
      return words[++i];
    };
    if (word == "--gpu") {
      flags.gpu = std::atoi(value().c_str());
    } else if (word == "--cpu") {
      flags.on_cpu = true;
    } else if (word == "--deterministic") {
      flags.is_deterministic = true;
    } else if (word == "--seconds") {
      flags.seconds = std::atof(value().c_str());
    } else if (word == "--precision") {
      flags.precisions = at_commas(value());
    } else if (word.starts_with("--")) {
      end_with("no flag '" + word + "'", 2);
    } else {
      flags.nets.emplace_back(word);
    }
  }
  if (flags.nets.empty()) end_with("name the prototxt of a net, or of several", 2);
  for (const std::string& word : flags.precisions) precision_of(word);
  return flags;
}

// The backend, and what it is called.
std::unique_ptr<Backend> make_backend(const GpuBenchFlags& flags, const std::string& precision) {
  if (flags.on_cpu) return expect(make_cpu_backend(CpuOptions{}));
  GpuOptions options;
  options.index = flags.gpu;
  options.precision = precision_of(precision);
  options.deterministic = flags.is_deterministic;
  return expect(make_gpu_backend(options));
}

// As `speedo time --training-steps` has it: a rate that leaves noise within the range of numbers.
caffe::SolverParameter bench_solver() {
  caffe::SolverParameter solver;
  solver.set_base_lr(1e-4F);
  solver.set_lr_policy("fixed");
  solver.set_momentum(0.9F);
  solver.set_weight_decay(5e-4F);
  return solver;
}

void fill_inputs(Net& net) {
  Random random(1);
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->type() != "Input") continue;
    for (Tensor* top : view.tops) {
      std::vector<float> noise(static_cast<std::size_t>(top->count()));
      for (float& value : noise) value = random.gaussian(0.0F, 1.0F);
      top->set_values(net.backend(), noise);
    }
  }
}

std::int64_t batch_of(const Net& net) {
  for (const Net::LayerView& view : net.layers()) {
    if (view.bottoms.empty() && !view.tops.empty()) return view.tops.front()->shape()[0];
  }
  return 1;
}

struct NetTimes {
  std::int64_t batch = 0;
  double step_ms = 0.0;  // the median
  double flops = 0.0;    // of a step
  std::int64_t planned_bytes = 0;
  std::set<std::string> kernels;
};

double milliseconds_between(Instant start, Instant end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

// Training as the product does it: steps that wait for no loss where there are such, else one by
// one.
class Training {
 public:
  Training(Net& net, Backend& backend)
      : net_(net),
        rule_(expect(UpdateRule::create(bench_solver(), net.layout(), backend))),
        kept_(net, KeptValues::Kind::kAll),
        quiet_(expect(QuietSteps::create(
            {.net = net, .rule = *rule_, .kept = kept_, .passes = 1}))) {}

  // How many steps run() makes.
  std::int64_t steps() const { return quiet_ == nullptr ? 1 : kQuietSteps; }
  void run() {
    if (quiet_ == nullptr) {
      expect(accumulate_gradients(net_, 1));
      rule_->update(iteration_++, net_.weights().data(), net_.gradients().data());
      return;
    }
    for (std::int64_t i = 0; i < kQuietSteps; ++i) expect(quiet_->queue(iteration_++));
    if (std::ssize(quiet_->read()) != kQuietSteps) end_with("a loss is not finite", 1);
  }

 private:
  static constexpr std::int64_t kQuietSteps = 20;
  Net& net_;
  const std::unique_ptr<UpdateRule> rule_;
  KeptValues kept_;
  const std::unique_ptr<QuietSteps> quiet_;
  std::int64_t iteration_ = 0;
};

// Steps follow one another as in training, so that the host is ahead of the device where it can be.
NetTimes measure(Backend& backend, const std::filesystem::path& prototxt, double seconds) {
  NetOptions options;
  options.backend = &backend;
  options.seed = 1;
  const auto net = expect(read_net(prototxt, std::move(options)));
  Training training(*net, backend);
  expect(backend.provide_scratch());
  fill_inputs(*net);
  for (int i = 0; i < kWarmUpSteps; ++i) training.run();
  backend.device().synchronize();
  std::vector<double> times;
  const Instant start = steady_clock().now();
  Instant last = start;
  while (static_cast<int>(times.size()) < kStepsMax) {
    training.run();
    const Instant now = steady_clock().now();
    times.push_back(milliseconds_between(last, now) / static_cast<double>(training.steps()));
    last = now;
    const bool is_enough = static_cast<int>(times.size()) >= kStepsMin;
    if (is_enough && milliseconds_between(start, now) > 1e3 * seconds) break;
  }
  backend.device().synchronize();
  times.back() += milliseconds_between(last, steady_clock().now()) /
                  static_cast<double>(training.steps());
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  NetTimes found;
  found.batch = batch_of(*net);
  found.step_ms = times[times.size() / 2];
  const Net::Memory memory = net->memory();
  found.planned_bytes = memory.blob_bytes + memory.workspace_bytes + memory.scratch_bytes +
                        3 * memory.parameter_bytes;  // weights, gradients, history
  for (const Net::LayerView& view : net->layers()) {
    const OperationInfo info = view.layer->info();
    found.flops += info.forward_flops + info.backward_flops;
    if (view.layer->type() == "Convolution") found.kernels.insert(info.kernel);
  }
  return found;
}

nlohmann::json json_of(const std::string& net, const std::string& precision,
                       const NetTimes& found) {
  const double per_second = 1e3 / found.step_ms;
  return {{"net", net},
          {"precision", precision},
          {"batch", found.batch},
          {"step_ms", found.step_ms},
          {"images_per_second", static_cast<double>(found.batch) * per_second},
          {"flops_per_second", found.flops * per_second},
          {"planned_mib", found.planned_bytes >> 20U},
          {"kernels", found.kernels}};
}

int run(const GpuBenchFlags& flags) {
  std::string device = "cpu";
  if (!flags.on_cpu) {
    const auto devices = gpu_devices();
    if (!devices) end_with("skipped: " + devices.error().message, kSkipped);
    if (flags.gpu < 0 || flags.gpu >= static_cast<int>(devices->size())) {
      end_with(fmt::format("--gpu {}: this machine has {}", flags.gpu, devices->size()), 2);
    }
    device = (*devices)[static_cast<std::size_t>(flags.gpu)].name;
  }
  nlohmann::json nets = nlohmann::json::array();
  fmt::print("{}\n\n| net | precision | batch | ms | images/s | TFLOP/s | planned MiB |\n"
             "|---|---|---|---|---|---|---|\n",
             device);
  for (const std::filesystem::path& prototxt : flags.nets) {
    for (const std::string& precision : flags.precisions) {
      const auto backend = make_backend(flags, precision);
      const NetTimes found = measure(*backend, prototxt, flags.seconds);
      const std::string name = prototxt.stem().string();
      fmt::print("| {} | {} | {} | {:.3f} | {:.1f} | {:.2f} | {} |\n", name, precision,
                 found.batch, found.step_ms,
                 static_cast<double>(found.batch) * 1e3 / found.step_ms,
                 found.flops / found.step_ms * 1e-9, found.planned_bytes >> 20U);
      std::fflush(stdout);
      nets.push_back(json_of(name, precision, found));
    }
  }
  const nlohmann::json all = {{"device", device}, {"nets", nets}};
  fmt::print("{}\n", all.dump());
  return 0;
}

}  // namespace
}  // namespace speedo::bench

int main(int argc, char** argv) {
  return speedo::bench::run(
      speedo::bench::read_flags(std::vector<std::string>(argv + 1, argv + argc)));
}
