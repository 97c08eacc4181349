#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "base/parse_number.hpp"
#include "cli/command_line.hpp"
#include "cli/report/console.hpp"
#include "cli/flags/flag_values.hpp"
#include "cli/flags/later_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/report/record_progress.hpp"
#include "data/convert.hpp"
#include "data/csv.hpp"
#include "data/image/image_files.hpp"
#include "data/open_source.hpp"
#include "data/subset.hpp"
#include "main/commands.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

struct ConvertFlags {
  std::string kind;
  std::vector<std::string> paths;  // inputs, then the output
  std::string backend = "lmdb";
  bool force = false;
  std::string test_output;
  SplitOptions split;
  std::string shape, label = "last", delimiter = ",";
  CsvOptions csv;
};

void add_csv_flags(CLI::App& app, ConvertFlags& flags) {
  const char* group = "CSV";
  takes(app.add_option("--shape", flags.shape, "C,H,W of a record (default: one channel a value)"),
        "C,H,W")
      ->group(group);
  takes_one_of(
      app.add_option("--label", flags.label, "Column of the label: last (default) or first"),
      {"last", "first"})
      ->group(group);
  app.add_flag("--header", flags.csv.header, "The first line names the columns")->group(group);
  takes(app.add_option("--delimiter", flags.delimiter, "Character between values (default ,)"), "C")
      ->group(group);
  takes_number(app.add_option("--scale", flags.csv.scale,
                              "Stored value = number * scale + offset (default 1)"))
      ->group(group);
  takes_number(app.add_option("--offset", flags.csv.offset, "See --scale (default 0)"))
      ->group(group);
  app.add_flag("--floats", flags.csv.floats, "Store floats instead of bytes 0..255")->group(group);
}

void add_record_flags(CLI::App& app, ConvertFlags& flags) {
  const char* group = "Records";
  SplitOptions& split = flags.split;
  takes_count(
      app.add_option("--first", split.first, "Leave out the records before this one (from 0)"), 0)
      ->group(group);
  takes_count(app.add_option("--count", split.count, "Take so many records (default: all)"), 1)
      ->group(group);
  takes_count(app.add_option("--shuffle", split.shuffle_seed, "Shuffle them, with this seed"), 0)
      ->group(group);
  takes_file(
      app.add_option("--test-output", flags.test_output, "Write a part to this second database"))
      ->group(group);
  takes_count(app.add_option("--train-count", split.train_count, "That part: all after so many"), 1)
      ->group(group);
  takes_count(app.add_option("--test-every", split.test_every, "That part: every n-th record"), 2)
      ->group(group);
  takes_amount(
      app.add_option("--test-fraction", split.test_fraction, "That part: the last fraction"))
      ->group(group);
}

void add_flags(CLI::App& app, ConvertFlags& flags) {
  takes_one_of(app.add_option("kind", flags.kind, "idx, cifar, csv, or db for a database"),
               {"idx", "cifar", "csv", "db"})
      ->required();
  takes_file(app.add_option("paths", flags.paths, "Input files, then the output"))->required();
  const char* output = "Output";
  takes_one_of(app.add_option("--backend", flags.backend, "lmdb (default), datumfile or hdf5"),
               {"lmdb", "datumfile", "hdf5"})
      ->group(output);
  app.add_flag("--force", flags.force, "Replace the output")->group(output);
  add_record_flags(app, flags);
  add_csv_flags(app, flags);
  app.footer(
      "idx takes IMAGES LABELS OUTPUT, cifar takes FILE... OUTPUT, csv and db take FILE OUTPUT.\n"
      "idx and csv files may be compressed with gzip.\n\n"
      "Examples:\n"
      "  speedo convert idx train-images-idx3-ubyte train-labels-idx1-ubyte mnist_train_lmdb\n"
      "  speedo convert csv digits.csv.gz train_lmdb --shape 1,8,8 --count 1500\n"
      "  speedo convert db mnist_train_lmdb mnist_train.datumfile --backend datumfile");
}

Result<ImageDims> parse_shape(const std::string& text) {
  ImageDims dims;
  if (text.empty()) return dims;
  std::vector<std::int64_t> sizes;
  for (const std::string& part : split_at_commas(text)) {
    const auto size = parse_number<std::int64_t>(part);
    if (!size || *size < 1) {
      return usage_error("--shape takes C,H,W, three numbers from 1, not '" + text + "'");
    }
    sizes.push_back(*size);
  }
  if (sizes.size() != 3)
    return usage_error("--shape takes C,H,W, three numbers, not '" + text + "'");
  dims.channels = sizes[0];
  dims.height = sizes[1];
  dims.width = sizes[2];
  return dims;
}

Result<std::unique_ptr<DataSource>> open_input(const ConvertFlags& flags,
                                               const std::vector<fs::path>& inputs) {
  if (flags.kind == "cifar") return open_cifar(inputs);
  if (flags.kind == "idx") {
    if (inputs.size() > 2) return usage_error("convert idx takes IMAGES LABELS OUTPUT");
    return open_idx(inputs[0], inputs.size() == 2 ? inputs[1] : idx_labels_beside(inputs[0]));
  }
  if (inputs.size() != 1) return usage_error("convert " + flags.kind + " takes FILE OUTPUT");
  if (flags.kind == "db") return open_source(inputs[0].string(), {});
  CsvOptions csv = flags.csv;
  SPEEDO_ASSIGN(csv.dims, parse_shape(flags.shape));
  if (flags.delimiter.size() != 1) return usage_error("--delimiter takes one character");
  csv.delimiter = flags.delimiter[0];
  csv.label_first = flags.label == "first";
  return open_csv(inputs[0], csv);
}

Result<void> write(DataSource& source, std::vector<std::int64_t> records, const std::string& output,
                   const ConvertFlags& flags) {
  SubsetSource subset(source, std::move(records));
  RecordProgress progress(subset.size());
  ConvertOptions options;
  options.output = output;
  options.format = flags.backend == "hdf5"        ? RecordFormat::kHdf5
                   : flags.backend == "datumfile" ? RecordFormat::kDatumfile
                                                  : RecordFormat::kLmdb;
  options.force = flags.force;
  options.progress = [&](std::int64_t done, std::int64_t) { progress.update(done); };
  SPEEDO_TRY(convert(subset, options));
  progress.finish();
  SPEEDO_INFO("Wrote {} records to {}", subset.size(), output);
  return {};
}

Result<void> check(const ConvertFlags& flags) {
  if (flags.paths.size() < 2) {
    return usage_error(
        "give the input and, last, the output: speedo convert idx IMAGES LABELS OUTPUT");
  }
  const bool split = flags.split.train_count || flags.split.test_every || flags.split.test_fraction;
  if (split && flags.test_output.empty()) {
    return usage_error("--train-count, --test-every and --test-fraction need --test-output");
  }
  if (!split && !flags.test_output.empty()) {
    return usage_error("--test-output needs --train-count, --test-every or --test-fraction");
  }
  return {};
}

}  // namespace

Result<int> convert_command(const std::vector<std::string>& arguments) {
  CLI::App app("Make a database of MNIST (idx), CIFAR or CSV files, or of another database",
               "speedo convert");
  ConvertFlags flags;
  add_flags(app, flags);
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, arguments));
  if (parsed == Parsed::kDone) return 0;
  SPEEDO_TRY(check(flags));

  set_up_console(false);
  const std::vector<fs::path> inputs(flags.paths.begin(), flags.paths.end() - 1);
  SPEEDO_ASSIGN(const std::unique_ptr<DataSource> source, open_input(flags, inputs));
  SPEEDO_ASSIGN(Split split, split_records(source->size(), flags.split));
  SPEEDO_TRY(write(*source, std::move(split.train), flags.paths.back(), flags));
  if (!flags.test_output.empty()) {
    SPEEDO_TRY(write(*source, std::move(split.test), flags.test_output, flags));
  }
  return 0;
}

}  // namespace speedo
