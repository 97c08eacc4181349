#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/remote_files.hpp>

#include "base/log.hpp"
#include "caffe.pb.h"
#include "cli/flags/caffe_flags.hpp"
#include "cli/kept_inputs.hpp"
#include "cli/report/console.hpp"
#include "cli/signals.hpp"
#include "core/prototxt.hpp"
#include "data/dataset_writer.hpp"
#include "main/commands.hpp"
#include "main/commands/extract_features_flags.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "tools/feature_stream.hpp"
#include "tools/feature_writer.hpp"

namespace speedo {

namespace {

// What a layer reads, of whatever type it is; some are empty.
std::vector<std::string> files_of(const caffe::LayerParameter& layer) {
  return {layer.data_param().source(), layer.hdf5_data_param().source(),
          layer.image_data_param().source(), layer.window_data_param().source(),
          layer.transform_param().mean_file(), layer.infogain_loss_param().source()};
}

// Whatever --force says, what is read is not replaced: the net's data, in another phase too, and
// the net itself. What is wrong with the net is found when it is built.
Result<void> check_targets(const FeatureFlags& flags) {
  const std::filesystem::path base = std::filesystem::path(flags.net.model).parent_path();
  const auto file = find_file(flags.net.model, {});
  if (!file) return {};
  const auto net = read_net_prototxt(*file);
  if (!net) return {};
  std::vector<std::string> inputs = {flags.net.weights, flags.net.model};
  for (const caffe::LayerParameter& layer : net->layer()) {
    for (const std::string& source : files_of(layer)) {
      if (!source.empty()) inputs.push_back(resolve_name(source, base));
    }
  }
  for (const std::string& target : flags.databases) {
    SPEEDO_TRY(check_target(target, inputs, "the database " + target));
  }
  return {};
}

// Each part begins with zeros where the one process goes on with what the batch before left.
Result<void> check_carries_nothing(const Net& net) {
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->carried_values().empty()) continue;
    return Error{ErrorCode::kConfig,
                 fmt::format("layer '{}' carries values from batch to batch, so that its features "
                             "are those of one process alone: leave out --workers and --hosts",
                             view.layer->name())};
  }
  return {};
}

Result<std::vector<FeatureWriter>> make_writers(const FeatureFlags& flags, const Net& net) {
  std::vector<FeatureWriter> writers;
  for (std::size_t i = 0; i < flags.blobs.size(); ++i) {
    ConvertOptions output = flags.output;
    output.output = flags.databases[i];
    SPEEDO_ASSIGN(FeatureWriter writer, FeatureWriter::create(net, flags.blobs[i], output));
    writers.push_back(std::move(writer));
  }
  return writers;
}

// A batch's features; each thousandth image is told of.
Result<void> add_batch(const Net& net, std::vector<FeatureWriter>& writers) {
  constexpr std::int64_t kToldEach = 1000;
  for (FeatureWriter& writer : writers) {
    const std::int64_t before = writer.count();
    SPEEDO_TRY(writer.add_batch(net));
    if (before / kToldEach != writer.count() / kToldEach) {
      SPEEDO_INFO("Extracted features of {} query images for feature blob {}", writer.count(),
                  writer.blob());
    }
  }
  return {};
}

Result<void> extract(const FeatureFlags& flags, Net& net) {
  SPEEDO_ASSIGN(std::vector<FeatureWriter> writers, make_writers(flags, net));
  net.set_batch_span({});
  SPEEDO_INFO("Extracting Features");
  for (std::int64_t batch = 0; batch < flags.batches; ++batch) {
    if (stop_requested()) return Error{ErrorCode::kUnavailable, "stopped before the last batch"};
    SPEEDO_ASSIGN([[maybe_unused]] const float loss, net.forward());
    SPEEDO_TRY(add_batch(net, writers));
  }
  for (FeatureWriter& writer : writers) {
    SPEEDO_TRY(writer.commit());
    SPEEDO_INFO("Extracted features of {} query images for feature blob {}", writer.count(),
                writer.blob());
  }
  SPEEDO_INFO("Successfully extracted the features!");
  return {};
}

// What a worker of extract_in_parts() does: its features go to standard output.
Result<void> extract_part(const FeatureFlags& flags, Net& net) {
  if (flags.part->count < flags.batches) SPEEDO_TRY(check_carries_nothing(net));
  std::uint64_t records = 0;
  std::vector<FeatureWriter> writers;
  for (std::size_t i = 0; i < flags.blobs.size(); ++i) {
    SPEEDO_ASSIGN(
        FeatureWriter writer,
        FeatureWriter::create(net, flags.blobs[i],
                              make_stream_writer(stdout, static_cast<std::uint32_t>(i), records)));
    writers.push_back(std::move(writer));
  }
  SPEEDO_TRY(begin_feature_stream(stdout));
  net.set_batch_span({.first = static_cast<std::uint64_t>(flags.part->first)});
  for (std::int64_t batch = 0; batch < flags.part->count; ++batch) {
    SPEEDO_ASSIGN([[maybe_unused]] const float loss, net.forward());
    for (FeatureWriter& writer : writers) SPEEDO_TRY(writer.add_batch(net));
  }
  return end_feature_stream(stdout, records);
}

Result<void> extract_here(const FeatureFlags& flags) {
  SPEEDO_ASSIGN(ComputeOptions compute, settle(flags.compute));
  // More threads than parts would divide loops otherwise than the one process did.
  compute.parts = flags.loop_parts;
  if (compute.parts > 0) compute.threads = std::min(compute.threads, compute.parts);
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  const std::unique_ptr<SinkFactory> sinks = make_sinks();
  NetOptions options;
  options.backend = backend.get();
  options.feeds = feeds.get();
  options.sinks = sinks.get();
  options.trains = false;
  options.logs_set_up = !flags.part;
  options.kept_blobs = flags.blobs;
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, build_net(flags.net, Phase::kTest, options));
  return flags.part ? extract_part(flags, *net) : extract(flags, *net);
}

}  // namespace

Result<int> extract_features_command(const CommandLine& line) {
  OptionValues values(Program::kExtractFeatures);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_program_options(from_gflags(line.arguments, values.program()), values));
  if (parsed == Parsed::kDone) return 0;
  SPEEDO_ASSIGN(const FeatureFlags flags, feature_flags(values));

  set_up_console(false);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  if (flags.device == "GPU" && !flags.compute.gpu) {
    const std::string number = flags.device_id.empty() ? "N" : flags.device_id;
    SPEEDO_WARN("GPU: computing on the CPU; --gpu {} computes on one", number);
  }
  if (!flags.part) SPEEDO_TRY(check_targets(flags));
  const bool is_spread = !flags.part && (flags.workers > 1 || !flags.hosts.empty());
  SPEEDO_TRY(is_spread ? extract_in_parts(flags) : extract_here(flags));
  return 0;
}

}  // namespace speedo
