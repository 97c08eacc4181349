#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "caffe.pb.h"
#include "cli/command_line.hpp"
#include "cli/report/console.hpp"
#include "cli/flags/flag_values.hpp"
#include "cli/flags/later_flags.hpp"
#include "cli/report/record_progress.hpp"
#include "core/weight_file.hpp"
#include "data/image/mean.hpp"
#include "data/open_source.hpp"
#include "main/commands.hpp"

namespace speedo {

Result<int> mean_command(const std::vector<std::string>& arguments) {
  CLI::App app("Compute the mean image of a data set", "speedo mean");
  std::string input, output, backend;
  bool force = false;
  takes_file(app.add_option("input", input, "Database or data file"))->required();
  takes_file(app.add_option("output", output, "File to write, usually mean.binaryproto"))
      ->required();
  takes_one_of(app.add_option("--backend", backend,
                              "lmdb or datumfile (default: what the input looks like)"),
               {"lmdb", "datumfile"});
  app.add_flag("--force", force, "Replace the output");
  app.footer(
      "Example:\n"
      "  speedo mean examples/cifar10/cifar10_train_lmdb examples/cifar10/mean.binaryproto");
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, arguments));
  if (parsed == Parsed::kDone) return 0;

  set_up_console(false);
  std::error_code code;
  if (!force && std::filesystem::exists(output, code)) {
    return Error{ErrorCode::kCannotWrite,
                 "'" + output + "' exists already; remove it or use --force"};
  }
  SourceOptions options;
  if (backend == "lmdb") options.kind = SourceKind::kLmdb;
  if (backend == "datumfile") options.kind = SourceKind::kDatumfile;
  SPEEDO_ASSIGN(const std::unique_ptr<DataSource> source, open_source(input, options));
  RecordProgress progress(source->size());
  SPEEDO_ASSIGN(const caffe::BlobProto mean,
                compute_mean(*source, [&](std::int64_t done) { progress.update(done); }));
  SPEEDO_TRY(write_blob_file(output, mean));
  progress.finish();
  SPEEDO_INFO("Wrote the mean of {} records to {}", source->size(), output);
  return 0;
}

}  // namespace speedo
