// format_cases draw SEED                            prints a random net (tests/nets)
// format_cases weights MODEL OUT.caffemodel SEED    random weights for the net that is deployed
// format_cases run MODEL WEIGHTS OUT.safetensors SEED
//     one TEST pass with random inputs; OUT has every input and output as "BLOB.0".
//
// What tests/formats/runtimes.py compares other programs' results with. Exit code: 0, 1.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/random.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "core/blob_proto.hpp"
#include "core/weight_file.hpp"
#include "formats/read_deploy_net.hpp"
#include "formats/safetensors_file.hpp"
#include "nets/random_net.hpp"

namespace speedo::test {
namespace {

// So that values stay about as large from layer to layer.
std::vector<float> weights_like(const caffe::LayerParameter& layer, int blob, const Shape& shape,
                                Random& random) {
  const std::int64_t fan = shape.axes() > 1 ? shape.count(1) : 1;
  float low = -std::sqrt(3.0F / static_cast<float>(fan));
  float high = -low;
  if (shape.axes() <= 1) low = -0.3F, high = 0.3F;
  const bool is_factor = layer.type() == "Scale" && blob == 0;
  if (is_factor) low = 0.5F, high = 1.5F;
  if (layer.type() == "BatchNorm" && blob == 1) low = 2.0F, high = 6.0F;
  if (layer.type() == "BatchNorm" && blob == 2) low = high = 4.0F;
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (float& value : values) value = random.uniform(low, high);
  return values;
}

Result<std::unique_ptr<Net>> deployed(const std::string& model, Backend& backend,
                                      caffe::NetParameter& message) {
  NetOptions options;
  options.backend = &backend;
  options.phase = Phase::kTest;
  options.trains = false;
  DeployRequest request;
  request.model = model;
  SPEEDO_ASSIGN(message, read_deploy_net(request, options));
  return Net::create(message, options);
}

Result<void> write_weights(Net& net, const caffe::NetParameter& message, const std::string& file,
                           Random& random) {
  caffe::NetParameter weights;
  net.to_proto(weights, false);
  for (caffe::LayerParameter& layer : *weights.mutable_layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      SPEEDO_ASSIGN(const Shape shape, shape_of(layer.blobs(i)));
      const std::vector<float> values = weights_like(layer, i, shape, random);
      const auto target = set_shape_and_data(shape, *layer.mutable_blobs(i));
      std::copy(values.begin(), values.end(), target.begin());
    }
  }
  return write_caffemodel(file, with_weights(message, weights));
}

// Whole numbers below this for what reads the blob as numbers of items.
float integer_limit(const Net& net, const std::string& blob) {
  for (const Net::LayerView& view : net.layers()) {
    for (std::size_t i = 0; i < view.bottom_names.size(); ++i) {
      if (view.bottom_names[i] != blob) continue;
      if (view.layer->type() == "Embed") {
        return static_cast<float>(view.layer->parameters()[0]->shape()[0]);
      }
      if (view.layer->type() == "BatchReindex" && i == 1) {
        return static_cast<float>(view.bottoms[0]->shape()[0]);
      }
      const bool is_cont = (view.layer->type() == "LSTM" || view.layer->type() == "RNN") && i == 1;
      if (is_cont || (view.layer->type() == "LSTMUnit" && i == 2)) return 2.0F;
    }
  }
  return 0.0F;
}

void keep(const std::string& blob, const Tensor& tensor, const std::vector<float>& values,
          caffe::NetParameter& record) {
  caffe::LayerParameter& layer = *record.add_layer();
  layer.set_name(blob);
  const auto target = set_shape_and_data(tensor.shape(), *layer.add_blobs());
  std::copy(values.begin(), values.end(), target.begin());
}

Result<void> run(Net& net, const std::string& file, Random& random) {
  caffe::NetParameter record;
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->type() != "Input") continue;
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      const float limit = integer_limit(net, view.top_names[i]);
      std::vector<float> values(static_cast<std::size_t>(view.tops[i]->count()));
      for (float& value : values) {
        value = limit > 0.0F ? std::floor(random.uniform() * limit) : random.uniform(-1.0F, 1.0F);
      }
      view.tops[i]->set_values(net.backend(), values);
      keep(view.top_names[i], *view.tops[i], values, record);
    }
  }
  SPEEDO_ASSIGN([[maybe_unused]] const float loss, net.forward());
  for (const std::string& blob : net.output_names()) {
    bool is_input = false;
    for (const caffe::LayerParameter& layer : record.layer()) is_input |= layer.name() == blob;
    const Tensor& tensor = *net.blob(blob);
    if (!is_input) keep(blob, tensor, tensor.values(net.backend()), record);
  }
  return write_safetensors(file, record, {});
}

Result<void> work(const std::vector<std::string>& arguments) {
  const std::string& command = arguments.at(0);
  Random random(std::strtoull(arguments.back().c_str(), nullptr, 10));
  if (command == "draw") {
    const std::uint64_t seed = std::strtoull(arguments.at(1).c_str(), nullptr, 10);
    std::fputs(nets::draw_net(seed).c_str(), stdout);
    return {};
  }
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  caffe::NetParameter message;
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, deployed(arguments.at(1), *backend, message));
  if (command == "weights") return write_weights(*net, message, arguments.at(2), random);
  SPEEDO_ASSIGN(const caffe::NetParameter weights, read_caffemodel(arguments.at(2)));
  SPEEDO_TRY(net->copy_weights_from(weights));
  return run(*net, arguments.at(3), random);
}

}  // namespace
}  // namespace speedo::test

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs(
        "usage: format_cases draw SEED | weights MODEL OUT SEED | run MODEL WEIGHTS OUT "
        "SEED\n",
        stderr);
    return 2;
  }
  const auto done = speedo::test::work({argv + 1, argv + argc});
  if (done) return 0;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return 1;
}
