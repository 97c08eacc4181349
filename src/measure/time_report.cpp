#include "measure/time_report.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/log.hpp"
#include "cli/net_inputs.hpp"

namespace speedo {

namespace {

std::string layout_name(const std::vector<Tensor*>& tensors) {
  if (tensors.empty()) return "";
  const Layout layout = tensors.front()->layout();
  if (layout.is_plain()) return "plain";
  const bool whole = layout.block == tensors.front()->array_shape().channels;
  const char* const type = layout.type == ElementType::kFloat32 ? "" : ", bf16";
  return whole ? fmt::format("channels last{}", type) : fmt::format("blocked {}", layout.block);
}

// Rates without a time or an operation count are unknown.
std::optional<double> rate(double flops, double ms) {
  if (flops <= 0.0 || ms <= 0.0) return std::nullopt;
  return flops / ms / 1e6;
}

std::optional<double> share(std::optional<double> rate, double of) {
  if (!rate || of <= 0.0) return std::nullopt;
  return *rate / of;
}

nlohmann::ordered_json to_value(std::optional<double> figure) {
  return figure ? nlohmann::ordered_json(*figure) : nlohmann::ordered_json(nullptr);
}

std::string fused_passes(Fused fused) {
  if (fused.forward && fused.backward) return "both";
  if (fused.forward) return "forward";
  return fused.backward ? "backward" : "";
}

nlohmann::ordered_json layer_object(const TimeReport::Layer& layer, double sgemm_gflops) {
  const auto forward = rate(layer.forward_flops, layer.forward_ms);
  const auto backward = rate(layer.backward_flops, layer.backward_ms);
  return {{"name", layer.name},
          {"type", layer.type},
          {"forward_ms", layer.forward_ms},
          {"backward_ms", layer.backward_ms},
          {"forward_gflops", to_value(forward)},
          {"backward_gflops", to_value(backward)},
          {"forward_share", to_value(share(forward, sgemm_gflops))},
          {"backward_share", to_value(share(backward, sgemm_gflops))},
          {"kernel", layer.kernel},
          {"from_layout", layer.from_layout},
          {"layout", layer.layout},
          {"fused", fused_passes(layer.fused)},
          {"reorder", layer.is_reorder}};
}

// What a layer computes with, for people: the kernel, or whether another layer does its work.
std::string kernel_text(const TimeReport::Layer& layer) {
  const std::string passes = fused_passes(layer.fused);
  if (passes == "both") return "(with a layer beside it)";
  if (!passes.empty()) return fmt::format("(with a layer beside it: {})", passes);
  return layer.kernel;
}

std::string layout_text(const TimeReport::Layer& layer) {
  if (layer.from_layout.empty() || layer.from_layout == layer.layout) return layer.layout;
  return layer.from_layout + " > " + layer.layout;
}

std::string rounded(std::optional<double> value, const char* unit = "") {
  return value ? fmt::format("{:.0f}{}", *value, unit) : "";
}

std::string row(const TimeReport::Layer& layer, double sgemm_gflops) {
  const auto forward = rate(layer.forward_flops, layer.forward_ms);
  const auto backward = rate(layer.backward_flops, layer.backward_ms);
  const auto percent = [&](std::optional<double> figure) {
    const auto part = share(figure, sgemm_gflops);
    return rounded(part ? std::optional(*part * 100.0) : std::nullopt, " %");
  };
  return fmt::format("{:<28} {:<16} {:>10.3f} {:>10.3f} {:>8} {:>8} {:>6} {:>6}  {:<26} {}\n",
                     layer.name, layer.is_reorder ? "(inserted)" : layer.type, layer.forward_ms,
                     layer.backward_ms, rounded(forward), rounded(backward), percent(forward),
                     percent(backward), layout_text(layer), kernel_text(layer));
}

// Biases are as nothing beside the products. A layer without weights has other gradients to make.
bool trains_weights(const Net& net, const Net::LayerView& view) {
  return view.slots.empty() || std::ranges::any_of(view.slots, [&](std::size_t index) {
           const ParameterSlot& slot = net.layout().slots()[index];
           return slot.shape.axes() > 1 && slot.lr_mult != 0.0F;
         });
}

}  // namespace

double TimeReport::images_per_second() const {
  return step_ms > 0.0 ? static_cast<double>(images) * 1e3 / step_ms : 0.0;
}

double TimeReport::reorder_ms() const {
  double sum = 0.0;
  for (const Layer& layer : layers) {
    if (layer.is_reorder) sum += layer.forward_ms + layer.backward_ms;
  }
  return sum;
}

double TimeReport::flops() const {
  double sum = 0.0;
  for (const Layer& layer : layers) sum += layer.forward_flops + layer.backward_flops;
  return sum;
}

double TimeReport::gflops() const { return rate(flops(), step_ms).value_or(0.0); }

TimeReport make_time_report(const Net& net, const std::vector<StepTime>& steps, int passes) {
  TimeReport report;
  report.net = net.name();
  report.iterations = static_cast<std::int64_t>(steps.size());
  report.images = images_per_pass(net) * passes;
  report.forward_ms = median_of(steps, [](const auto& step) { return step.forward_total_ms; });
  report.backward_ms = median_of(steps, [](const auto& step) { return step.backward_total_ms; });
  report.update_ms = median_of(steps, [](const auto& step) { return step.update_ms; });
  report.data_wait_ms = median_of(steps, [](const auto& step) { return step.data_wait_ms; });
  report.step_ms = median_of(steps, [](const auto& step) { return step.step_ms; });
  for (std::size_t i = 0; i < net.layers().size(); ++i) {
    const Net::LayerView& view = net.layers()[i];
    const OperationInfo info = view.layer->info();
    TimeReport::Layer layer;
    layer.name = view.layer->name();
    layer.type = view.layer->type();
    layer.kernel = info.kernel;
    layer.layout = layout_name(view.tops);
    layer.from_layout = layout_name(view.bottoms);
    layer.fused = view.fused;
    layer.is_reorder = view.is_reorder;
    layer.forward_ms = median_of(steps, [i](const auto& step) { return step.forward_ms[i]; });
    layer.backward_ms = median_of(steps, [i](const auto& step) { return step.backward_ms[i]; });
    layer.forward_flops = info.forward_flops * passes;
    if (view.needs_backward) {
      // The gradients by data and by weights cost the same: at the data's end there is only the
      // one, of weights that nothing trains only the other.
      const bool by_data = !view.propagate.empty() && view.propagate.front();
      const double part =
          0.5 * (by_data ? 1.0 : 0.0) + 0.5 * (trains_weights(net, view) ? 1.0 : 0.0);
      layer.backward_flops = info.backward_flops * passes * part;
    }
    report.layers.push_back(std::move(layer));
  }
  return report;
}

std::string to_json(const TimeReport& report) {
  nlohmann::ordered_json object;
  object["net"] = report.net;
  object["compute"] = report.compute;
  object["train"] = report.trains;
  object["iterations"] = report.iterations;
  object["images"] = report.images;
  object["forward_ms"] = report.forward_ms;
  object["backward_ms"] = report.backward_ms;
  object["forward_backward_ms"] = report.forward_ms + report.backward_ms;
  object["update_ms"] = report.update_ms;
  object["step_ms"] = report.step_ms;
  object["data_wait_ms"] = report.data_wait_ms;
  object["reorder_ms"] = report.reorder_ms();
  object["images_per_second"] = report.images_per_second();
  const auto gflops = rate(report.flops(), report.step_ms);
  object["gflops"] = to_value(gflops);
  object["sgemm_gflops"] = report.sgemm_gflops;
  object["share_of_sgemm"] = to_value(share(gflops, report.sgemm_gflops));
  object["peak_memory_bytes"] = report.peak_memory_bytes;
  object["layers"] = nlohmann::ordered_json::array();
  for (const TimeReport::Layer& layer : report.layers) {
    object["layers"].push_back(layer_object(layer, report.sgemm_gflops));
  }
  return json_text(object);
}

std::string to_text(const TimeReport& report) {
  std::string text = fmt::format("{}: {}, medians of {} iterations\n", report.net, report.compute,
                                 report.iterations);
  text += fmt::format("{:<28} {:<16} {:>10} {:>10} {:>8} {:>8} {:>6} {:>6}  {:<26} {}\n", "layer",
                      "type", "forward ms", "back ms", "GFLOP/s", "back", "sgemm", "back", "layout",
                      "kernel");
  for (const TimeReport::Layer& layer : report.layers) text += row(layer, report.sgemm_gflops);
  text += fmt::format("forward {:.3f} ms, backward {:.3f} ms", report.forward_ms,
                      report.backward_ms);
  if (report.trains) text += fmt::format(", update {:.3f} ms", report.update_ms);
  text += fmt::format("; step {:.3f} ms, {:.1f} images/s\n", report.step_ms,
                      report.images_per_second());
  if (report.gflops() > 0.0) {
    text += fmt::format("{:.0f} GFLOP/s, {:.0f} % of sgemm ({:.0f} GFLOP/s)\n", report.gflops(),
                        100.0 * report.gflops() / report.sgemm_gflops, report.sgemm_gflops);
  }
  text += fmt::format("reorders {:.3f} ms; waited for data {:.3f} ms; peak memory {:.1f} MiB\n",
                      report.reorder_ms(), report.data_wait_ms,
                      static_cast<double>(report.peak_memory_bytes) / (1024.0 * 1024.0));
  return text;
}

void log_averages(const Net& net, const std::vector<StepTime>& steps) {
  const auto mean = [&](const auto& figure) {
    double sum = 0.0;
    for (const StepTime& step : steps) sum += figure(step);
    return sum / static_cast<double>(steps.size());
  };
  const auto show = [](const std::string& name, double forward, double backward) {
    SPEEDO_INFO("{:>10}\tforward: {:g} ms.", name, forward);
    SPEEDO_INFO("{:>10}\tbackward: {:g} ms.", name, backward);
  };
  SPEEDO_INFO("Average time per layer: ");
  double reorders_forward = 0.0, reorders_backward = 0.0;
  bool has_reorders = false;
  for (std::size_t i = 0; i < net.layers().size(); ++i) {
    const double forward = mean([i](const StepTime& step) { return step.forward_ms[i]; });
    const double backward = mean([i](const StepTime& step) { return step.backward_ms[i]; });
    if (!net.layers()[i].is_reorder) {
      show(net.layers()[i].layer->name(), forward, backward);
      continue;
    }
    has_reorders = true;
    reorders_forward += forward;
    reorders_backward += backward;
  }
  if (has_reorders) show("(inserted)", reorders_forward, reorders_backward);
  const double forward_ms = mean([](const StepTime& step) { return step.forward_total_ms; });
  const double backward_ms = mean([](const StepTime& step) { return step.backward_total_ms; });
  const double step_ms = mean([](const StepTime& step) { return step.step_ms; });
  SPEEDO_INFO("Average Forward pass: {:g} ms.", forward_ms);
  SPEEDO_INFO("Average Backward pass: {:g} ms.", backward_ms);
  SPEEDO_INFO("Average Forward-Backward: {:g} ms.", forward_ms + backward_ms);
  SPEEDO_INFO("Total Time: {:g} ms.", step_ms * static_cast<double>(steps.size()));
  SPEEDO_INFO("*** Benchmark ends ***");
}

}  // namespace speedo
