#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "caffe.pb.h"
#include "cli/kept_inputs.hpp"
#include "cli/report/console.hpp"
#include "cli/report/record_progress.hpp"
#include "core/weight_file.hpp"
#include "data/image/mean.hpp"
#include "data/open_source.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {

Result<int> mean_command(const CommandLine& line) {
  OptionValues values(Program::kMean);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  std::string input, output, backend;
  bool force = false;
  values.get("input", input);
  values.get("output", output);
  values.get("backend", backend);
  values.get("force", force);

  set_up_console(false);
  SPEEDO_TRY(check_target(output, {input}, "the mean " + output));
  std::error_code code;
  if (!force && std::filesystem::exists(output, code)) {
    return Error{ErrorCode::kCannotWrite,
                 "'" + output + "' exists already; remove it or use --force"};
  }
  SPEEDO_TRY(check_file_writable(output));
  SPEEDO_ASSIGN(const std::unique_ptr<DataSource> source,
                open_source(input, {.kind = source_kind_named(backend)}));
  RecordProgress progress(source->size());
  SPEEDO_ASSIGN(const caffe::BlobProto mean,
                compute_mean(*source, [&](std::int64_t done) { progress.update(done); }));
  SPEEDO_TRY(write_blob_file(output, mean));
  progress.finish();
  SPEEDO_INFO("Wrote the mean of {} records to {}", source->size(), output);
  return 0;
}

}  // namespace speedo
