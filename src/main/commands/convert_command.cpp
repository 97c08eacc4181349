#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/remote_files.hpp>

#include "base/log.hpp"
#include "base/parse_number.hpp"
#include "base/whole_path.hpp"
#include "caffe.pb.h"
#include "cli/flags/compute_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/report/console.hpp"
#include "cli/report/record_progress.hpp"
#include "cli/signals.hpp"
#include "data/convert.hpp"
#include "data/csv.hpp"
#include "data/image/image_files.hpp"
#include "data/open_source.hpp"
#include "data/subset.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

struct ConvertFlags {
  std::string kind;
  std::vector<std::string> paths;  // inputs, then the output
  std::string backend;
  bool force = false, skip_bad_records = false;
  std::string test_output;
  SplitOptions split;
  std::string parts;
  std::vector<double> ratios;  // what `parts` says; empty: one output
  std::string shape, label, delimiter;
  CsvOptions csv;
};

ConvertFlags convert_flags(const OptionValues& values) {
  ConvertFlags flags;
  values.get("kind", flags.kind);
  values.get("paths", flags.paths);
  values.get("backend", flags.backend);
  values.get("force", flags.force);
  flags.skip_bad_records = skips_bad_records(values);
  values.get("test-output", flags.test_output);
  values.get("first", flags.split.first);
  values.get("count", flags.split.count);
  values.get("shuffle", flags.split.shuffle_seed);
  values.get("train-count", flags.split.train_count);
  values.get("test-every", flags.split.test_every);
  values.get("test-fraction", flags.split.test_fraction);
  values.get("parts", flags.parts);
  values.get("shape", flags.shape);
  values.get("label", flags.label);
  values.get("delimiter", flags.delimiter);
  values.get("header", flags.csv.header);
  values.get("scale", flags.csv.scale);
  values.get("offset", flags.csv.offset);
  values.get("floats", flags.csv.floats);
  return flags;
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

// "3": three equal parts. "2,1.5,1": as large as these are to each other. Empty: one part.
Result<std::vector<double>> parse_parts(const std::string& text) {
  constexpr std::int64_t kPartsMax = 10000;
  if (text.empty()) return std::vector<double>{};
  std::vector<double> ratios;
  if (const auto count = parse_number<std::int64_t>(text)) {
    if (*count >= 1 && *count <= kPartsMax) ratios.assign(static_cast<std::size_t>(*count), 1.0);
  } else {
    for (const std::string& part : split_at_commas(text)) {
      const auto ratio = parse_number<double>(part);
      const bool is_good = ratio && *ratio > 0.0 && std::isfinite(*ratio);
      ratios.push_back(is_good ? *ratio : 0.0);
    }
  }
  const bool all_good = std::all_of(ratios.begin(), ratios.end(), [](double r) { return r > 0.0; });
  if (!ratios.empty() && all_good) return ratios;
  return usage_error(
      fmt::format("--parts takes a number of parts from 1 to {}, or their ratios "
                  "above 0 with commas between them, not '{}'",
                  kPartsMax, text));
}

// "train_lmdb" becomes "train_lmdb_2", "train.datumfile" "train_2.datumfile".
std::string part_name(const std::string& output, std::size_t number) {
  const fs::path path(output);
  return (path.parent_path() /
          fmt::format("{}_{}{}", path.stem().string(), number, path.extension().string()))
      .string();
}

Result<std::unique_ptr<DataSource>> open_input(const ConvertFlags& flags,
                                               const std::vector<fs::path>& inputs) {
  if (flags.kind == "idx" && inputs.size() > 2) {
    return usage_error("convert idx takes IMAGES LABELS OUTPUT");
  }
  const bool takes_one = flags.kind != "cifar" && flags.kind != "idx";
  if (takes_one && inputs.size() != 1) {
    return usage_error("convert " + flags.kind + " takes FILE OUTPUT");
  }
  if (flags.kind == "db") return open_source(inputs[0].string(), {});
  std::vector<fs::path> files;
  for (const fs::path& input : inputs) {
    SPEEDO_ASSIGN(fs::path file, find_file(input.string(), {}));
    files.push_back(std::move(file));
  }
  if (flags.kind == "cifar") return open_cifar(files);
  if (flags.kind == "idx") {
    if (files.size() == 1) {
      SPEEDO_ASSIGN(fs::path labels, find_idx_labels(inputs[0].string()));
      files.push_back(std::move(labels));
    }
    return open_idx(files[0], files[1]);
  }
  CsvOptions csv = flags.csv;
  SPEEDO_ASSIGN(csv.dims, parse_shape(flags.shape));
  if (flags.delimiter.size() != 1) return usage_error("--delimiter takes one character");
  csv.delimiter = flags.delimiter[0];
  csv.label_first = flags.label == "first";
  return open_csv(files[0], csv);
}

// An error is left to the conversion.
bool begins_encoded(DataSource& source) {
  std::string bytes;
  const auto is_datum = source.read_datum(0, bytes);
  caffe::Datum datum;
  return is_datum && *is_datum && datum.ParseFromString(bytes) && datum.encoded();
}

Result<void> write(DataSource& source, std::vector<std::int64_t> records, const std::string& output,
                   const ConvertFlags& flags) {
  SubsetSource subset(source, std::move(records));
  RecordProgress progress(subset.size());
  ConvertOptions options;
  options.output = output;
  options.format = record_format_named(flags.backend);
  options.force = flags.force;
  options.progress = [&](std::int64_t done, std::int64_t) { progress.update(done); };
  options.stopped = [] { return stop_requested().has_value(); };
  options.on_bad_record = bad_record_policy(flags.skip_bad_records);
  if (options.format == RecordFormat::kHdf5 && begins_encoded(subset)) {
    SPEEDO_INFO("Encoded images become pixels, with the channels of each: HDF5 holds numbers");
  }
  SPEEDO_ASSIGN(const std::int64_t written, convert(subset, options));
  progress.finish();
  SPEEDO_INFO("Wrote {} records to {}", written, output);
  return {};
}

// Where the records go: one output or its parts, then the test records.
std::vector<std::string> output_names(const ConvertFlags& flags) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < flags.ratios.size(); ++i) {
    names.push_back(part_name(flags.paths.back(), i));
  }
  if (names.empty()) names.push_back(flags.paths.back());
  if (!flags.test_output.empty()) names.push_back(flags.test_output);
  return names;
}

// Writing the output takes an input away.
bool replaces_input(const std::string& output, const ConvertFlags& flags) {
  const auto is_lost = [output = whole_path(output)](const std::string& input) {
    return is_within(whole_path(input), output);
  };
  return std::any_of(flags.paths.begin(), flags.paths.end() - 1, is_lost);
}

// Writing the output takes away an input, or a file of one.
bool touches_input(const std::string& output, const ConvertFlags& flags) {
  const auto is_around = [output = whole_path(output)](const std::string& input) {
    return is_within(output, whole_path(input));
  };
  return replaces_input(output, flags) ||
         std::any_of(flags.paths.begin(), flags.paths.end() - 1, is_around);
}

struct OutputRecords {
  std::string name;
  std::vector<std::int64_t> records;
};

// The source is read for each. An output in its place comes last: by then the others are written,
// so that none of them lacks what was there, and one that fails leaves it there.
Result<void> write_outputs(DataSource& source, Split split, const ConvertFlags& flags) {
  std::vector<std::vector<std::int64_t>> dealt;
  if (flags.ratios.empty()) {
    dealt.push_back(std::move(split.train));
  } else {
    SPEEDO_ASSIGN(dealt, deal_records(split.train, flags.ratios));
  }
  if (!flags.test_output.empty()) dealt.push_back(std::move(split.test));
  const std::vector<std::string> names = output_names(flags);
  std::vector<OutputRecords> outputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    outputs.push_back({names[i], std::move(dealt[i])});
  }
  std::stable_partition(outputs.begin(), outputs.end(), [&](const OutputRecords& output) {
    return !touches_input(output.name, flags);
  });
  for (OutputRecords& output : outputs) {
    SPEEDO_TRY(write(source, std::move(output.records), output.name, flags));
  }
  return {};
}

// Each would replace the other, or what another one is still to be read from.
Result<void> check_outputs(const ConvertFlags& flags) {
  std::map<fs::path, std::string> seen;
  std::string replacing;
  for (const std::string& output : output_names(flags)) {
    const auto [place, is_new] = seen.emplace(whole_path(output), output);
    if (!is_new) {
      return usage_error(fmt::format("{} is {}, where other records go: give it another name",
                                     output, place->second));
    }
    if (!replaces_input(output, flags)) continue;
    if (!replacing.empty()) {
      return usage_error(fmt::format(
          "{} and {} both are what is read: give one of them another name", replacing, output));
    }
    replacing = output;
  }
  if (flags.backend != "hdf5") return {};
  const std::vector<std::string> names = output_names(flags);
  const auto clash = clashing_hdf5_outputs(names);
  if (!clash) return {};
  return usage_error(
      fmt::format("{} and {} would replace each other's files, as the data of NAME.h5 lie in "
                  "NAME_0.h5, NAME_1.h5, ...: give one of them another name",
                  clash->first, clash->second));
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
  return check_outputs(flags);
}

}  // namespace

Result<int> convert_command(const CommandLine& line) {
  OptionValues values(Program::kConvert);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  ConvertFlags flags = convert_flags(values);
  SPEEDO_ASSIGN(flags.ratios, parse_parts(flags.parts));
  SPEEDO_TRY(check(flags));
  if (flags.kind != "csv") {
    SPEEDO_TRY(values.refuse_given(
        {"shape", "label", "header", "delimiter", "scale", "offset", "floats"},
        fmt::format("of {}, only of CSV files", flags.kind)));
  }

  set_up_console(false);
  const std::vector<fs::path> inputs(flags.paths.begin(), flags.paths.end() - 1);
  SPEEDO_ASSIGN(const std::unique_ptr<DataSource> source, open_input(flags, inputs));
  SPEEDO_ASSIGN(Split split, split_records(source->size(), flags.split));
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  SPEEDO_TRY(write_outputs(*source, std::move(split), flags));
  return 0;
}

}  // namespace speedo
