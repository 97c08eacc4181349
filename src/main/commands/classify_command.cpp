#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>

#include "base/json_text.hpp"
#include "base/log.hpp"
#include "cli/flags/caffe_flags.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/report/console.hpp"
#include "data/bad_records.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "tools/class_labels.hpp"
#include "tools/image_classifier.hpp"

namespace speedo {

namespace {

struct ClassifyFlags {
  NetFlags net;
  ComputeFlags compute;
  std::string mean, labels;
  std::vector<std::string> images;
  int top = 0;
  double scale = 1.0;
  bool json = false;
};

ClassifyFlags classify_flags(const OptionValues& values) {
  ClassifyFlags flags;
  flags.net = net_flags(values);
  flags.compute = compute_flags(values);
  values.get("mean", flags.mean);
  values.get("labels", flags.labels);
  values.get("images", flags.images);
  values.get("top", flags.top);
  values.get("scale", flags.scale);
  values.get("json", flags.json);
  return flags;
}

// The best classes of one image.
struct Answers {
  const std::vector<float>& values;
  const std::vector<std::string>& labels;
  std::vector<std::size_t> places;
};

void print_text(const std::string& image, const Answers& answers) {
  std::printf("---------- Prediction for %s ----------\n", image.c_str());
  for (const std::size_t place : answers.places) {
    std::printf("%.4f - \"%s\"\n", static_cast<double>(answers.values[place]),
                answers.labels[place].c_str());
  }
}

nlohmann::json json_of(const std::string& image, const Answers& answers) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::size_t place : answers.places) {
    list.push_back(
        {{"class", place}, {"label", answers.labels[place]}, {"score", answers.values[place]}});
  }
  return {{"image", image}, {"answers", list}};
}

Result<void> classify(const ClassifyFlags& flags, Net& net) {
  SPEEDO_ASSIGN(std::vector<float> mean, read_channel_means(flags.mean));
  SPEEDO_ASSIGN(const auto classifier,
                ImageClassifier::create(net, {std::move(mean), static_cast<float>(flags.scale)}));
  SPEEDO_ASSIGN(const std::vector<std::string> labels,
                read_class_labels(flags.labels, classifier->classes()));
  nlohmann::json images = nlohmann::json::array();
  BadRecords bad(bad_record_policy(flags.compute.skip_bad_records), nullptr, "images");
  std::uint64_t missed = 0, in_a_row = 0;
  for (std::size_t i = 0; i < flags.images.size(); ++i) {
    const std::string& image = flags.images[i];
    const Result<std::vector<float>> values = classifier->classify(image);
    if (!values) {
      if (!bad.pass_over(i, values.error(), in_a_row)) return values.error();
      ++in_a_row;
      if (++missed < flags.images.size()) continue;
      return Error{ErrorCode::kData, "no image could be read"};
    }
    in_a_row = 0;
    const Answers answers{*values, labels,
                          highest_places(*values, static_cast<std::size_t>(flags.top))};
    if (flags.json) {
      images.push_back(json_of(image, answers));
    } else {
      print_text(image, answers);
    }
  }
  if (!flags.json) return {};
  const nlohmann::json object = {{"images", images}};
  std::printf("%s\n", json_text(object).c_str());
  return {};
}

}  // namespace

Result<int> classify_command(const CommandLine& line) {
  OptionValues values(Program::kClassify);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_program_options(from_gflags(line.arguments, values.program()), values));
  if (parsed == Parsed::kDone) return 0;
  const ClassifyFlags flags = classify_flags(values);

  set_up_console(false);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  NetOptions options;
  options.backend = backend.get();
  options.trains = false;
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, build_net(flags.net, Phase::kTest, options));
  SPEEDO_TRY(classify(flags, *net));
  return 0;
}

}  // namespace speedo
