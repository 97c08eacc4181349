#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"
#include "cli/flags/caffe_flags.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/options/read_options.hpp"
#include "cli/report/console.hpp"
#include "cli/signals.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "tools/feature_writer.hpp"

namespace speedo {

namespace {

struct FeatureFlags {
  NetFlags net;
  ComputeFlags compute;
  std::vector<std::string> blobs, databases;
  int batches = 0;
  ConvertOptions output;
  std::string device, device_id;
};

FeatureFlags feature_flags(const OptionValues& values) {
  FeatureFlags flags;
  std::string blobs, databases, backend;
  flags.net = net_flags(values);
  flags.compute = compute_flags(values);
  values.get("blobs", blobs);
  values.get("databases", databases);
  values.get("batches", flags.batches);
  values.get("backend", backend);
  values.get("device", flags.device);
  values.get("device-id", flags.device_id);
  values.get("force", flags.output.force);
  flags.blobs = split_at_commas(blobs);
  flags.databases = split_at_commas(databases);
  flags.output.format = record_format_named(backend);
  return flags;
}

Result<void> check(const FeatureFlags& flags) {
  if (flags.blobs.size() == flags.databases.size()) return {};
  return usage_error(fmt::format("{} blobs are named, but {} databases: give one for each",
                                 flags.blobs.size(), flags.databases.size()));
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
  for (int batch = 0; batch < flags.batches; ++batch) {
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

}  // namespace

Result<int> extract_features_command(const CommandLine& line) {
  OptionValues values(Program::kExtractFeatures);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_options(from_gflags(line.arguments, values.program()), values));
  if (parsed == Parsed::kDone) return 0;
  const FeatureFlags flags = feature_flags(values);
  SPEEDO_TRY(check(flags));

  set_up_console(false);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  if (flags.device == "GPU" && !flags.compute.gpu) {
    SPEEDO_WARN("GPU {}: --gpu N computes on one; computing on the CPU", flags.device_id);
  }
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  const std::unique_ptr<SinkFactory> sinks = make_sinks();
  NetOptions options;
  options.backend = backend.get();
  options.feeds = feeds.get();
  options.sinks = sinks.get();
  options.trains = false;
  options.kept_blobs = flags.blobs;
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, build_net(flags.net, Phase::kTest, options));
  SPEEDO_TRY(extract(flags, *net));
  return 0;
}

}  // namespace speedo
