#include <memory>
#include <string>

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "caffe.pb.h"
#include "cli/flags/caffe_flags.hpp"
#include "cli/kept_inputs.hpp"
#include "cli/report/console.hpp"
#include "cli/report/record_progress.hpp"
#include "core/weight_file.hpp"
#include "data/image/mean.hpp"
#include "data/open_source.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace {

void log_channels(const caffe::BlobProto& mean) {
  SPEEDO_INFO("Number of channels: {}", mean.channels());
  const int plane = mean.height() * mean.width();
  for (int c = 0; c < mean.channels(); ++c) {
    double sum = 0.0;
    for (int i = 0; i < plane; ++i) sum += mean.data(c * plane + i);
    SPEEDO_INFO("mean_value channel [{}]: {:g}", c, sum / plane);
  }
}

}  // namespace

Result<int> compute_image_mean_command(const CommandLine& line) {
  OptionValues values(Program::kComputeImageMean);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_program_options(from_gflags(line.arguments, values.program()), values));
  if (parsed == Parsed::kDone) return 0;
  std::string input, output, backend;
  values.get("input", input);
  values.get("output", output);
  values.get("backend", backend);

  set_up_console(false);
  if (!output.empty()) {
    SPEEDO_TRY(check_target(output, {input}, "the mean " + output));
    SPEEDO_TRY(check_file_writable(output));
  }
  SPEEDO_ASSIGN(const std::unique_ptr<DataSource> source,
                open_source(input, {.kind = source_kind_named(backend)}));
  SPEEDO_INFO("Starting iteration");
  constexpr std::int64_t kToldEach = 10000;
  RecordProgress progress(source->size());
  const auto tell = [&](std::int64_t done) {
    progress.update(done);
    if (done % kToldEach == 0) SPEEDO_INFO("Processed {} files.", done);
  };
  SPEEDO_ASSIGN(const caffe::BlobProto mean, compute_mean(*source, tell));
  progress.finish();
  if (source->size() % kToldEach != 0) SPEEDO_INFO("Processed {} files.", source->size());
  if (!output.empty()) {
    SPEEDO_INFO("Write to {}", output);
    SPEEDO_TRY(write_blob_file(output, mean));
  }
  log_channels(mean);
  return 0;
}

}  // namespace speedo
