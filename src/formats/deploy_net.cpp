#include "formats/deploy_net.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/net/net_filter.hpp"
#include "core/suggest.hpp"

namespace speedo {

namespace {

using Names = std::set<std::string>;

// A layer that stays, or the place of one that goes.
struct Step {
  caffe::LayerParameter layer;
  std::vector<std::string> read;         // in the training net
  // What somebody may want where a layer goes: of what it read, or what it has left in its place.
  std::vector<std::string> needed = {};
  bool stays = true;
};

std::vector<std::string> bottoms_of(const caffe::LayerParameter& layer) {
  return {layer.bottom().begin(), layer.bottom().end()};
}

bool is_one_of(const std::string& type, std::initializer_list<const char*> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// Also a Python layer without bottoms, as some nets read their images with.
bool reads_data(const caffe::LayerParameter& layer) {
  if (layer.type() == "Python") return layer.bottom_size() == 0;
  return is_one_of(layer.type(),
                   {"Data", "ImageData", "WindowData", "HDF5Data", "MemoryData", "DummyData"});
}

// Whether a layer only compares what it reads, or uses it up. It goes, or its activation stays.
bool goes(const std::string& type) {
  return is_one_of(type, {"Silence", "HDF5Output", "ContrastiveLoss", "SoftmaxWithLoss",
                          "InfogainLoss", "SigmoidCrossEntropyLoss", "EuclideanLoss", "HingeLoss",
                          "MultinomialLogisticLoss", "Accuracy"});
}

// The type of the layer that computes what the loss does before it compares; empty: none.
std::string activation_of(const std::string& loss) {
  if (is_one_of(loss, {"SoftmaxWithLoss", "InfogainLoss"})) return "Softmax";
  return loss == "SigmoidCrossEntropyLoss" ? "Sigmoid" : "";
}

Names names_in(const caffe::NetParameter& net) {
  Names names;
  for (const caffe::LayerParameter& layer : net.layer()) {
    names.insert(layer.name());
    names.insert(layer.top().begin(), layer.top().end());
  }
  return names;
}

// That a Softmax, or a loss with one, goes along; 0 for others.
int axis_of(const caffe::LayerParameter& layer) {
  if (layer.type() == "InfogainLoss") return layer.infogain_loss_param().axis();
  if (is_one_of(layer.type(), {"Softmax", "SoftmaxWithLoss"})) return layer.softmax_param().axis();
  return 0;
}

// Whether the net computes already what the loss does before it compares.
bool has_activation(const caffe::NetParameter& net, const std::string& type,
                    const caffe::LayerParameter& loss) {
  return std::any_of(net.layer().begin(), net.layer().end(), [&](const auto& layer) {
    return layer.type() == type && layer.bottom_size() == 1 && layer.bottom(0) == loss.bottom(0) &&
           axis_of(layer) == axis_of(loss);
  });
}

// The loss as a layer of the type of its activation, under a name that the net has not. Its top is
// the loss' second one, if there is one: the activation's values.
caffe::LayerParameter as_activation(const caffe::LayerParameter& loss, const std::string& type,
                                    Names& taken) {
  caffe::LayerParameter layer;
  std::string name = taken.count("prob") == 0 ? "prob" : loss.name() + "/prob";
  while (taken.count(name) != 0) name += "_";
  taken.insert(name);
  layer.set_name(name);
  layer.set_type(type);
  layer.add_bottom(loss.bottom(0));
  layer.add_top(loss.top_size() > 1 ? loss.top(1) : name);
  if (type == "Softmax" && axis_of(loss) != 1) {
    layer.mutable_softmax_param()->set_axis(axis_of(loss));
  }
  return layer;
}

// Without what only a training net means.
caffe::LayerParameter plain(caffe::LayerParameter layer) {
  layer.clear_phase();
  layer.clear_include();
  layer.clear_exclude();
  layer.clear_loss_weight();
  layer.clear_propagate_down();
  layer.clear_blobs();
  return layer;
}

bool is_source(const caffe::LayerParameter& layer) {
  return layer.type() == "Input" || reads_data(layer);
}

// Whether it computes with values that training finds.
bool learns(const caffe::LayerParameter& layer) {
  if (is_one_of(layer.type(), {"Scale", "Bias"})) return layer.bottom_size() == 1;
  return is_one_of(layer.type(), {"InnerProduct", "Convolution", "Deconvolution", "BatchNorm",
                                  "PReLU", "Embed", "LSTM", "RNN", "Parameter"});
}

// What is known of a net's blobs where a layer reads them.
class Origins {
 public:
  void add(const caffe::LayerParameter& layer) {
    const bool from_source = is_source(layer);
    const bool learned = !from_source && (learns(layer) || any(layer.bottom(), learned_));
    for (const std::string& top : layer.top()) {
      set(top, from_source, given_);
      set(top, learned, learned_);
    }
  }
  // Of what a layer that goes reads, what somebody may want who only asks the net. Nobody does
  // labels and data. Which side of EuclideanLoss holds the labels is the net's choice: it is the
  // one that nothing learned is in.
  std::vector<std::string> wanted_of(const caffe::LayerParameter& loss) const {
    std::vector<std::string> wanted;
    if (is_one_of(loss.type(), {"Silence", "HDF5Output"})) return wanted;
    const bool is_euclidean = loss.type() == "EuclideanLoss";
    const bool chooses = is_euclidean && any(loss.bottom(), learned_);
    const int compared = chooses || loss.type() == "ContrastiveLoss" ? 2 : 1;
    for (int i = 0; i < std::min(compared, loss.bottom_size()); ++i) {
      const std::string& bottom = loss.bottom(i);
      if (given_.contains(bottom) || (chooses && !learned_.contains(bottom))) continue;
      wanted.push_back(bottom);
    }
    return wanted;
  }

 private:
  template <typename Bottoms>
  static bool any(const Bottoms& bottoms, const Names& names) {
    return std::any_of(bottoms.begin(), bottoms.end(),
                       [&](const std::string& bottom) { return names.contains(bottom); });
  }
  static void set(const std::string& top, bool is_one, Names& names) {
    if (is_one) {
      names.insert(top);
    } else {
      names.erase(top);
    }
  }

  Names given_, learned_;
};

// The tops of layers that go, and of those that reckon with them: they go, too.
class Gone {
 public:
  bool reads_one(const caffe::LayerParameter& layer) const {
    return std::any_of(layer.bottom().begin(), layer.bottom().end(),
                       [&](const std::string& bottom) { return tops_.contains(bottom); });
  }
  // `stays`: what the deployed net has instead of `layer`.
  void add(const caffe::LayerParameter& layer, const caffe::LayerParameter& stays) {
    tops_.insert(layer.top().begin(), layer.top().end());
    for (const std::string& top : stays.top()) tops_.erase(top);
  }

 private:
  Names tops_;
};

std::vector<Step> steps_of(const caffe::NetParameter& net) {
  std::vector<Step> steps;
  Names taken = names_in(net);
  Origins origins;
  Gone gone;
  for (const caffe::LayerParameter& layer : net.layer()) {
    const std::string activation = activation_of(layer.type());
    if (gone.reads_one(layer)) {
      steps.push_back({.layer = {}, .read = bottoms_of(layer), .stays = false});
    } else if (!goes(layer.type())) {
      steps.push_back({plain(layer), bottoms_of(layer)});
    } else if (!activation.empty() && layer.bottom_size() > 0 &&
               (layer.top_size() > 1 || !has_activation(net, activation, layer))) {
      const caffe::LayerParameter made = as_activation(layer, activation, taken);
      steps.push_back({made, bottoms_of(layer), {made.top(0)}});
    } else {
      steps.push_back({.layer = {},
                       .read = bottoms_of(layer),
                       .needed = origins.wanted_of(layer),
                       .stays = false});
    }
    gone.add(layer, steps.back().layer);
    origins.add(layer);
  }
  return steps;
}

// Tops that no later layer of the training net reads, but for those of data layers and inputs.
Names outputs_of(const std::vector<Step>& steps) {
  Names unread;
  for (const Step& step : steps) {
    for (const std::string& bottom : step.read) unread.erase(bottom);
    if (is_source(step.layer)) continue;
    unread.insert(step.layer.top().begin(), step.layer.top().end());
  }
  return unread;
}

Result<void> check_outputs(const std::vector<Step>& steps,
                           const std::vector<std::string>& outputs) {
  Names made;
  for (const Step& step : steps) made.insert(step.layer.top().begin(), step.layer.top().end());
  for (const std::string& output : outputs) {
    if (made.count(output) != 0) continue;
    const std::vector<std::string> names(made.begin(), made.end());
    return config_error(fmt::format("the net has no blob '{}' to be an output{}", output,
                                    did_you_mean(output, names)));
  }
  return {};
}

// Of a data layer's or an input's tops, those that are needed, with their shapes.
void keep_tops(const std::function<bool(const std::string&)>& is_needed,
               caffe::LayerParameter& layer) {
  caffe::LayerParameter kept = layer;
  kept.clear_top();
  const bool has_shapes = layer.input_param().shape_size() == layer.top_size();
  if (has_shapes) kept.mutable_input_param()->clear_shape();
  for (int i = 0; i < layer.top_size(); ++i) {
    if (!is_needed(layer.top(i))) continue;
    kept.add_top(layer.top(i));
    if (has_shapes) *kept.mutable_input_param()->add_shape() = layer.input_param().shape(i);
  }
  layer = std::move(kept);
}

// The layers that what is wanted depends on; of data layers' and inputs' tops, only those.
std::vector<caffe::LayerParameter> needed_layers(const std::vector<Step>& steps,
                                                 const std::vector<std::string>& outputs) {
  Names needed(outputs.begin(), outputs.end());
  if (outputs.empty()) needed = outputs_of(steps);
  std::vector<caffe::LayerParameter> layers;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (outputs.empty()) needed.insert(step->needed.begin(), step->needed.end());
    if (!step->stays) continue;
    caffe::LayerParameter layer = step->layer;
    const auto is_needed = [&](const std::string& top) { return needed.count(top) != 0; };
    if (std::none_of(layer.top().begin(), layer.top().end(), is_needed)) continue;
    if (is_source(layer)) keep_tops(is_needed, layer);
    for (const std::string& top : layer.top()) needed.erase(top);
    needed.insert(layer.bottom().begin(), layer.bottom().end());
    layers.push_back(std::move(layer));
  }
  std::reverse(layers.begin(), layers.end());
  return layers;
}

Result<std::vector<caffe::LayerParameter>> layers_of(const caffe::NetParameter& net,
                                                     const DeployOptions& options) {
  caffe::NetParameter test = net;
  caffe::NetState state = options.state;
  state.set_phase(caffe::TEST);
  for (const std::string& stage : net.state().stage()) state.add_stage(stage);
  SPEEDO_TRY(filter_layers(state, test));
  const std::vector<Step> steps = steps_of(test);
  SPEEDO_TRY(check_outputs(steps, options.outputs));
  return needed_layers(steps, options.outputs);
}

void set_shape(const Shape& shape, caffe::BlobShape& message) {
  message.clear_dim();
  for (const std::int64_t dim : shape.dims()) message.add_dim(dim);
}

Result<void> add_inputs(const caffe::LayerParameter& data, const DeployOptions& options,
                        caffe::NetParameter& net) {
  for (const std::string& top : data.top()) {
    const auto shape = options.shapes.find(top);
    if (shape == options.shapes.end()) {
      return config_error(
          fmt::format("layer '{}' ({}): the shape of its top '{}' is not known; "
                      "give it with --shape {}=N,C,H,W",
                      data.name(), data.type(), top, top));
    }
    caffe::LayerParameter& input = *net.add_layer();
    input.set_name(top);
    input.set_type("Input");
    input.add_top(top);
    set_shape(shape->second, *input.mutable_input_param()->add_shape());
  }
  return {};
}

// Gives an Input layer the shapes that are asked for; it may have none of its own if all are.
void reshape_input(const DeployOptions& options, caffe::LayerParameter& input) {
  caffe::InputParameter& shapes = *input.mutable_input_param();
  if (shapes.shape_size() == 1) {
    for (int i = 1; i < input.top_size(); ++i) *shapes.add_shape() = shapes.shape(0);
  }
  for (int i = 0; i < input.top_size(); ++i) {
    const auto shape = options.shapes.find(input.top(i));
    if (shape == options.shapes.end()) continue;
    if (i == shapes.shape_size()) shapes.add_shape();
    if (i < shapes.shape_size()) set_shape(shape->second, *shapes.mutable_shape(i));
  }
}

}  // namespace

Result<caffe::NetParameter> deploy_net(const caffe::NetParameter& net,
                                       const DeployOptions& options) {
  SPEEDO_ASSIGN(std::vector<caffe::LayerParameter> layers, layers_of(net, options));
  if (std::all_of(layers.begin(), layers.end(), is_source)) {
    return config_error("of the net's TEST phase no layer is left but losses and data layers");
  }
  caffe::NetParameter deployed;
  deployed.set_name(net.name());
  for (caffe::LayerParameter& layer : layers) {
    if (reads_data(layer)) {
      SPEEDO_TRY(add_inputs(layer, options, deployed));
      continue;
    }
    if (layer.type() == "Input") reshape_input(options, layer);
    *deployed.add_layer() = std::move(layer);
  }
  return deployed;
}

Result<std::vector<DeployInput>> deploy_inputs(const caffe::NetParameter& net,
                                               const DeployOptions& options) {
  SPEEDO_ASSIGN(const std::vector<caffe::LayerParameter> layers, layers_of(net, options));
  std::vector<DeployInput> inputs;
  for (const caffe::LayerParameter& layer : layers) {
    if (!reads_data(layer) && layer.type() != "Input") continue;
    const auto& shapes = layer.input_param().shape();
    for (int i = 0; i < layer.top_size(); ++i) {
      DeployInput input{layer.top(i), std::nullopt};
      if (layer.type() == "Input" && !shapes.empty()) {
        const caffe::BlobShape& given = shapes[i < shapes.size() ? i : 0];
        SPEEDO_ASSIGN(input.shape, Shape::create({given.dim().begin(), given.dim().end()}));
      }
      inputs.push_back(std::move(input));
    }
  }
  return inputs;
}

caffe::NetParameter with_weights(const caffe::NetParameter& net,
                                 const caffe::NetParameter& weights) {
  // The last one of a name counts.
  std::map<std::string_view, const caffe::LayerParameter*> sources;
  for (const caffe::LayerParameter& source : weights.layer()) {
    if (source.blobs_size() > 0) sources.insert_or_assign(source.name(), &source);
  }
  caffe::NetParameter filled = net;
  for (caffe::LayerParameter& layer : *filled.mutable_layer()) {
    const auto source = sources.find(layer.name());
    if (source != sources.end()) *layer.mutable_blobs() = source->second->blobs();
  }
  return filled;
}

std::vector<caffe::LayerParameter> layers_left_out(const caffe::NetParameter& net,
                                                   const caffe::NetParameter& deployed) {
  Names there;
  for (const caffe::LayerParameter& layer : deployed.layer()) there.insert(layer.name());
  std::vector<caffe::LayerParameter> left;
  for (const caffe::LayerParameter& layer : net.layer()) {
    // Layers of the two phases may have one name.
    if (there.insert(layer.name()).second) left.push_back(plain(layer));
  }
  return left;
}

}  // namespace speedo
