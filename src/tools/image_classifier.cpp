#include "tools/image_classifier.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/parse_number.hpp"
#include "base/read_found.hpp"
#include "data/image/encoded_image.hpp"
#include "data/image/mean.hpp"
#include "data/image/resize.hpp"

namespace speedo {

namespace {

// Nothing if the text is not made of numbers alone.
std::vector<float> numbers_in(const std::string& text) {
  std::vector<float> numbers;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const auto number = parse_number<float>(part);
    if (!number || !std::isfinite(*number)) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

// The blob of the net's one Input layer.
Result<std::string> input_of(const Net& net) {
  std::string input;
  int count = 0;
  for (const Net::LayerView& view : net.layers()) {
    if (!view.bottoms.empty() || view.tops.empty()) continue;
    if (view.layer->type() != "Input") {
      return config_error(
          fmt::format("layer '{}' ({}) reads data of its own: classifying takes a "
                      "deploy net, whose data are an Input layer",
                      view.layer->name(), view.layer->type()));
    }
    count += static_cast<int>(view.tops.size());
    input = view.top_names.front();
  }
  if (count == 1) return input;
  return config_error(fmt::format("the net has {} inputs: classifying takes one", count));
}

}  // namespace

Result<std::vector<float>> read_channel_means(const std::string& text) {
  if (text == "none") return std::vector<float>{};
  if (std::vector<float> numbers = numbers_in(text); !numbers.empty()) return numbers;
  SPEEDO_ASSIGN(const MeanImage mean, read_found(text, {}, read_mean));
  const auto pixels = static_cast<std::size_t>(mean.dims.height * mean.dims.width);
  std::vector<float> means;
  for (auto first = mean.values.begin(); first != mean.values.end();
       first += static_cast<std::ptrdiff_t>(pixels)) {
    const double sum = std::accumulate(first, first + static_cast<std::ptrdiff_t>(pixels), 0.0);
    means.push_back(static_cast<float>(sum / static_cast<double>(pixels)));
    if (!std::isfinite(means.back())) {
      return Error{ErrorCode::kData,
                   fmt::format("mean file '{}': the mean of channel {} is not finite", text,
                               means.size() - 1)};
    }
  }
  return means;
}

Result<std::unique_ptr<ImageClassifier>> ImageClassifier::create(Net& net,
                                                                 ImagePreparation preparation) {
  std::unique_ptr<ImageClassifier> made(new ImageClassifier(net, std::move(preparation)));
  SPEEDO_TRY(made->set_up());
  return made;
}

Result<void> ImageClassifier::set_up() {
  SPEEDO_ASSIGN(input_, input_of(net_));
  Tensor& input = *net_.blob(input_);
  if (input.shape().axes() != 4 || (input.shape()[1] != 1 && input.shape()[1] != 3)) {
    return config_error(fmt::format("blob '{}' is {}: an image has four axes, with 1 or 3 channels",
                                    input_, to_string(input.shape())));
  }
  channels_ = input.shape()[1];
  height_ = input.shape()[2];
  width_ = input.shape()[3];
  if (net_.output_names().size() != 1) {
    return config_error(
        fmt::format("the net has {} outputs: classifying takes one", net_.output_names().size()));
  }
  output_ = net_.output_names().front();
  const std::size_t means = preparation_.mean.size();
  if (means > 1 && static_cast<std::int64_t>(means) != channels_) {
    return config_error(
        fmt::format("the mean has {} channels, but the net's input {}", means, channels_));
  }
  input.reshape({1, channels_, height_, width_});
  SPEEDO_TRY(net_.reshape());
  classes_ = net_.blob(output_)->count();
  return {};
}

Result<std::vector<float>> ImageClassifier::classify(const std::string& image) {
  SPEEDO_ASSIGN(const std::string file, read_image_file(image, {}));
  Record record;
  SPEEDO_TRY(decode_image_file(image, file, channels_ == 3 ? ImageColor::kColor : ImageColor::kGray,
                               record));
  resize_image(record, height_, width_);
  std::vector<float> pixels(record.bytes.size());
  const auto plane = static_cast<std::size_t>(height_ * width_);
  const std::vector<float>& mean = preparation_.mean;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const float offset = mean.empty() ? 0.0F : mean[mean.size() == 1 ? 0 : i / plane];
    pixels[i] = (static_cast<float>(record.bytes[i]) - offset) * preparation_.scale;
  }
  net_.blob(input_)->set_values(net_.backend(), pixels);
  SPEEDO_ASSIGN([[maybe_unused]] const float loss, net_.forward());
  std::vector<float> answer = net_.blob(output_)->values(net_.backend());
  if (std::all_of(answer.begin(), answer.end(), [](float value) { return std::isfinite(value); })) {
    return answer;
  }
  return Error{ErrorCode::kNotFinite,
               fmt::format("the answer for '{}' is not finite: look at the weights", image)};
}

std::vector<std::size_t> highest_places(const std::vector<float>& values, std::size_t count) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  count = std::min(count, places.size());
  std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count),
                    places.end(), [&](std::size_t a, std::size_t b) {
                      return values[a] != values[b] ? values[a] > values[b] : a < b;
                    });
  places.resize(count);
  return places;
}

}  // namespace speedo
