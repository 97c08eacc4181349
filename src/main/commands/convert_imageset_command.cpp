#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <speedo/base/remote_files.hpp>
#include <speedo/cpu/cpu_options.hpp>

#include "base/log.hpp"
#include "base/random_bits.hpp"
#include "base/read_found.hpp"
#include "base/whole_path.hpp"
#include "cli/flags/caffe_flags.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/kept_inputs.hpp"
#include "cli/report/console.hpp"
#include "cli/report/record_progress.hpp"
#include "cli/signals.hpp"
#include "data/image/convert_images.hpp"
#include "data/image/image_encoder.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace {

struct ImagesetFlags {
  std::string list;
  bool shuffle = false;
  std::optional<std::uint64_t> seed;
  ConvertImagesOptions options;
};

ImagesetFlags imageset_flags(const OptionValues& values) {
  ImagesetFlags flags;
  ConvertImagesOptions& options = flags.options;
  std::string database, backend;
  bool gray = false;
  values.get("root-folder", options.images.root);
  values.get("list", flags.list);
  values.get("database", database);
  values.get("gray", gray);
  values.get("shuffle", flags.shuffle);
  values.get("seed", flags.seed);
  values.get("resize-width", options.images.width);
  values.get("resize-height", options.images.height);
  values.get("check-size", options.check_size);
  values.get("encoded", options.encoded);
  values.get("encode-type", options.encoding);
  values.get("threads", options.threads);
  values.get("backend", backend);
  values.get("force", options.output.force);
  options.images.color = gray ? ImageColor::kGray : ImageColor::kColor;
  options.encoded = options.encoded || !options.encoding.empty();
  options.output.output = database;
  options.output.format = record_format_named(backend);
  options.output.on_bad_record = bad_record_policy(skips_bad_records(values));
  return flags;
}

Result<void> check(const ImagesetFlags& flags) {
  const ImageListOptions& images = flags.options.images;
  if ((images.height > 0) != (images.width > 0)) {
    return usage_error("--resize-width and --resize-height belong together: give both, or neither");
  }
  const std::string& encoding = flags.options.encoding;
  if (!encoding.empty() && !can_encode(encoding)) {
    return usage_error(
        fmt::format("--encode-type: takes png, jpg or jpeg, not '{}' (see --help)", encoding));
  }
  return {};
}

// One that is not there yet replaces nothing, nor without --force, and a list may be long.
Result<void> check_replaced(const ImagesetFlags& flags, const ImageList& list) {
  const std::filesystem::path& target = flags.options.output.output;
  const std::string named = "the database " + target.string();
  SPEEDO_TRY(check_target(target, {flags.list}, named));
  std::error_code code;
  if (!flags.options.output.force || !std::filesystem::exists(target, code)) return {};
  const std::filesystem::path whole = whole_path(target);
  for (std::int64_t i = 0; i < list.size(); ++i) {
    const std::string image = behind_root(flags.options.images.root, std::string(list.name(i)));
    if (takes_away(whole, image)) return replaced_input_error(named, image);
  }
  return {};
}

}  // namespace

Result<int> convert_imageset_command(const CommandLine& line) {
  OptionValues values(Program::kConvertImageset);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_program_options(from_gflags(line.arguments, values.program()), values));
  if (parsed == Parsed::kDone) return 0;
  ImagesetFlags flags = imageset_flags(values);
  SPEEDO_TRY(check(flags));
  if (!flags.shuffle) SPEEDO_TRY(values.refuse_given({"seed"}, "without --shuffle"));

  set_up_console(false);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  ConvertImagesOptions& options = flags.options;
  if (!values.given("threads")) options.threads = default_threads();
  SPEEDO_ASSIGN(ImageList list, read_found(flags.list, {}, ImageList::read));
  SPEEDO_TRY(check_replaced(flags, list));
  if (flags.shuffle) {
    options.shuffle_seed = flags.seed ? *flags.seed : random_bits() % kCountMax;
    SPEEDO_INFO("Shuffling data, with --seed {}", *options.shuffle_seed);
  }
  SPEEDO_INFO("A total of {} images.", list.size());
  constexpr std::int64_t kToldEach = 1000;
  RecordProgress progress(list.size());
  options.output.progress = [&](std::int64_t done, std::int64_t) {
    progress.update(done);
    if (done % kToldEach == 0) SPEEDO_INFO("Processed {} files.", done);
  };
  options.output.stopped = [] { return stop_requested().has_value(); };
  SPEEDO_ASSIGN(const ConvertedImages converted, convert_images(std::move(list), options));
  progress.finish();
  const std::int64_t all = converted.written + converted.skipped;
  if (all % kToldEach != 0) SPEEDO_INFO("Processed {} files.", all);
  SPEEDO_INFO("Wrote {} records to {}", converted.written, options.output.output.string());
  if (converted.skipped > 0) SPEEDO_WARN("{} images could not be read", converted.skipped);
  return 0;
}

}  // namespace speedo
