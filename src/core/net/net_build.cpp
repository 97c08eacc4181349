// From a NetParameter to connected layers: Caffe's Net::Init, one small step after another.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "core/fillers.hpp"
#include "core/layers/registry.hpp"
#include "core/net/layer_traits.hpp"
#include "core/net/net_filter.hpp"
#include "core/net/net_impl.hpp"
#include "core/net/net_log.hpp"
#include "core/net/net_split.hpp"
#include "core/suggest.hpp"
#include "core/upgrade/upgrade.hpp"

namespace speedo {
namespace {

// Streams of Random::derive, one for each thing that draws at construction.
constexpr std::uint64_t kSetUpStream = 2;

// The name of tops that a loss layer makes though the prototxt does not ask for them.
constexpr const char* kAutomaticTop = "(automatic)";

caffe::NetState state_of(const caffe::NetParameter& parameter, const NetOptions& options) {
  caffe::NetState state = parameter.state();
  state.set_phase(options.phase == Phase::kTrain ? caffe::TRAIN : caffe::TEST);
  state.set_level(options.level);
  for (const std::string& stage : options.stages) {
    const bool is_known =
        std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
    if (!is_known) state.add_stage(stage);
  }
  return state;
}

// A layer's own phase, which it has from the net where the prototxt gives it none, goes before the
// net's, as in Caffe.
LayerContext context_of(const caffe::LayerParameter& message, const NetOptions& options,
                        Random& random, std::size_t top_count) {
  LayerContext context;
  context.backend = options.backend;
  context.phase = message.phase() == caffe::TRAIN ? Phase::kTrain : Phase::kTest;
  context.feeds = options.feeds;
  context.sinks = options.sinks;
  context.feed_options = {context.phase, options.seed, options.base, options.start_fraction,
                          static_cast<int>(top_count)};
  context.random = &random;
  context.plan_only = options.plan_only;
  context.keep_blobs = options.keep_blobs || !options.kept_blobs.empty();
  return context;
}

}  // namespace

Error layer_error(const caffe::LayerParameter& message, const std::string& what, ErrorCode code) {
  return {code, fmt::format("layer '{}' ({}): {}", message.name(), message.type(), what)};
}

Error too_many_params(const caffe::LayerParameter& message, std::size_t parameter_count) {
  return layer_error(message, fmt::format("has {} param entries, but only {} parameters",
                                          message.param_size(), parameter_count));
}

Result<void> check_layer_count(const caffe::NetParameter& net) {
  const int count = std::max(net.layer_size(), net.layers_size());  // of today's form, or V1's
  if (count <= kNetLayersMax) return {};
  return Error{ErrorCode::kConfig, fmt::format("net '{}' has {} layers, {} are the most",
                                               net.name(), count, kNetLayersMax)};
}

Error wrong_loss_weights(const caffe::LayerParameter& message, std::size_t top_count) {
  return layer_error(message, fmt::format("loss_weight must be given for all {} tops or for none, "
                                          "not {} times",
                                          top_count, message.loss_weight_size()));
}

Result<void> check_propagate_down(const caffe::LayerParameter& message) {
  const int given = message.propagate_down_size();
  if (given == 0 || given == message.bottom_size()) return {};
  return layer_error(message, fmt::format("propagate_down must be given for all {} bottoms or "
                                          "for none, not {} times",
                                          message.bottom_size(), given));
}

Net::Impl::Impl(const NetOptions& net_options)
    : options(net_options), random(Random::derive(options.seed, {kSetUpStream})) {}

Result<void> Net::Impl::build(const caffe::NetParameter& parameter) {
  SPEEDO_TRY(check_layer_count(parameter));
  caffe::NetParameter net = parameter;
  SPEEDO_TRY(upgrade_net(net));
  const caffe::NetState state = state_of(net, options);
  const RuleUnmet unmet = options.logs_set_up ? RuleUnmet(log_rule_unmet) : RuleUnmet();
  SPEEDO_TRY(filter_layers(state, net, unmet));
  if (net.layer_size() == 0) {
    return Error{ErrorCode::kConfig, fmt::format("net '{}' has no layers in phase {}", net.name(),
                                                 caffe::Phase_Name(state.phase()))};
  }
  if (options.logs_set_up) log_parameters(state, net);
  std::vector<std::string> changed_losses;
  SPEEDO_TRY(insert_splits(net, {}, &changed_losses));
  if (options.logs_set_up) log_changed_losses(state, changed_losses);
  name = net.name();
  is_forced = net.force_backward();
  const auto count = static_cast<std::size_t>(net.layer_size());
  messages.reserve(count);
  built.reserve(count);
  for (caffe::LayerParameter& message : *net.mutable_layer()) {
    if (!message.has_phase()) {
      message.set_phase(state.phase());
    }
    if (options.logs_set_up) log_creation(message);
    const std::size_t first = built.size();
    const bool is_expanded = find_expansion(message.type()) != nullptr;
    SPEEDO_TRY(is_expanded ? expand_layer(message) : add_layer(message));
    if (options.logs_set_up) log_set_up(message, first);
    if (!is_expanded) messages.push_back(std::move(message));
  }
  SPEEDO_TRY(choose_backward());
  collect_outputs();
  own_slots.resize(layers.size());
  placed_slots.resize(layers.size());
  placed = std::make_shared<NetParameters>();
  parameters = placed;
  if (options.share_parameters != nullptr) SPEEDO_TRY(share_with(*options.share_parameters));
  SPEEDO_TRY(place_parameters());
  SPEEDO_TRY(create_arenas());
  note_expanded_slots();
  bind_parameters();
  for (caffe::LayerParameter& message : messages) {
    message.clear_blobs();  // They are in the arena now.
  }
  for (Expansion& expansion : expansions) {
    expansion.message.clear_blobs();
  }
  SPEEDO_TRY(plan());
  if (options.logs_set_up) log_end_of_set_up();
  return {};
}

Result<void> Net::Impl::add_layer(caffe::LayerParameter& message) {
  SPEEDO_TRY(check_propagate_down(message));
  SPEEDO_ASSIGN(layers.emplace_back(), make_layer(message));
  LayerView& view = built.emplace_back();
  graph.nodes.emplace_back().layer = layers.size() - 1;
  view.layer = layers.back().get();
  SPEEDO_TRY(connect_bottoms(message, view));
  SPEEDO_TRY(connect_tops(message, view));
  SPEEDO_TRY(set_up_layer(message, view));
  SPEEDO_TRY(freeze_statistics(view, message));
  return set_loss_weights(message, view);
}

std::size_t Net::Impl::add_blob(const std::string& blob_name) {
  blobs.push_back({blob_name, std::make_unique<Tensor>()});
  blob_names.push_back(blob_name);
  return graph.add_blob({});
}

// Each is found by its name, but no layer can ask for it, and it is no output.
std::size_t Net::Impl::add_automatic_top() {
  std::string top = kAutomaticTop;
  for (int number = 2; blob_index.count(top) > 0; ++number) {
    top = fmt::format("{} {}", kAutomaticTop, number);
  }
  return blob_index[top] = add_blob(top);
}

Result<void> Net::Impl::connect_bottoms(const caffe::LayerParameter& message, LayerView& view) {
  for (const std::string& bottom : message.bottom()) {
    // insert_splits() has found every bottom's producer, so only a second reader can be missing
    // here.
    if (unread.erase(bottom) == 0) {
      return layer_error(message, fmt::format("bottom blob '{}' is not available{}", bottom,
                                              did_you_mean(bottom, blob_names)));
    }
    const std::size_t blob = blob_index.at(bottom);
    graph.nodes.back().bottoms.push_back(blob);
    view.bottoms.push_back(blobs[blob].tensor.get());
    view.bottom_names.push_back(bottom);
  }
  return {};
}

Result<void> Net::Impl::connect_tops(const caffe::LayerParameter& message, LayerView& view) {
  GraphNode& node = graph.nodes.back();
  for (int i = 0; i < message.top_size(); ++i) {
    const std::string& top = message.top(i);
    const bool in_place = i < message.bottom_size() && message.bottom(i) == top;
    const auto known = blob_index.find(top);
    if (known != blob_index.end() && !in_place) {
      return layer_error(
          message, fmt::format("top blob '{}' is already the top of another layer; give it another "
                               "name (a layer can work in place only on a blob that nothing else "
                               "reads)",
                               top));
    }
    const std::size_t blob = in_place ? known->second : add_blob(top);
    blob_index[top] = blob;
    node.tops.push_back(blob);
    unread.insert(top);
  }
  if (view.layer->auto_tops()) {
    const auto wanted = static_cast<std::size_t>(std::max(view.layer->arity().tops_min, 0));
    while (node.tops.size() < wanted) {
      node.tops.push_back(add_automatic_top());
    }
  }
  for (const std::size_t blob : node.tops) {
    view.tops.push_back(blobs[blob].tensor.get());
    view.top_names.push_back(blobs[blob].name);
  }
  return {};
}

Result<void> Net::Impl::set_up_layer(const caffe::LayerParameter& message, LayerView& view) {
  const LayerContext context = context_of(message, options, random, view.tops.size());
  SPEEDO_TRY(view.layer->setup(context, view.bottoms, view.tops));
  SPEEDO_TRY(shape_layer(view));
  const std::size_t parameter_count = view.layer->parameter_requests().size();
  if (static_cast<std::size_t>(message.param_size()) > parameter_count) {
    return too_many_params(message, parameter_count);
  }
  for (std::size_t i = 0; i < parameter_count; ++i) {
    SPEEDO_TRY(check_request(message, view, i));
  }
  return {};
}

// Stored weights make the filler void.
Result<void> Net::Impl::check_request(const caffe::LayerParameter& message, const LayerView& view,
                                      std::size_t index) {
  const ParameterRequest& request = view.layer->parameter_requests()[index];
  if (auto shape = Shape::create(request.shape.dims()); !shape) {
    return layer_error(message, "parameter " + shape.error().message);
  }
  if (request.shape.count() == 0) {
    return layer_error(message,
                       fmt::format("parameter {} would be empty: its bottom '{}' is {}", index,
                                   view.bottom_names[0], to_string(view.bottoms[0]->shape())));
  }
  if (request.filler == nullptr || message.blobs_size() > 0) return {};
  if (auto good = check_filler(*request.filler, request.shape); !good) {
    return layer_error(message, fmt::format("parameter {}: {}", index, good.error().message));
  }
  return {};
}

// No solver may change what forward passes keep; the message says so, as Caffe's weight files do.
Result<void> Net::Impl::freeze_statistics(const LayerView& view, caffe::LayerParameter& message) {
  const auto& requests = view.layer->parameter_requests();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const int index = static_cast<int>(i);
    if (!requests[i].is_statistic) continue;
    while (message.param_size() < index) message.add_param();
    if (message.param_size() == index) message.add_param()->set_lr_mult(0.0F);
    const float lr_mult = message.param(index).lr_mult();
    if (lr_mult == 0.0F) continue;
    return layer_error(message, fmt::format("parameter {} is a statistic that no solver changes, "
                                            "but its lr_mult is {}; set it to 0 or leave param out",
                                            i, lr_mult));
  }
  return {};
}

Result<void> Net::Impl::shape_layer(const LayerView& view) const {
  SPEEDO_TRY(view.layer->reshape(view.bottoms, view.tops));
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    if (auto shape = Shape::create(view.tops[i]->shape().dims()); !shape) {
      return Error{ErrorCode::kConfig,
                   fmt::format("layer '{}' ({}): top '{}': {}", view.layer->name(),
                               view.layer->type(), view.top_names[i], shape.error().message)};
    }
  }
  return {};
}

Result<void> Net::Impl::set_loss_weights(const caffe::LayerParameter& message,
                                         const LayerView& view) {
  const int given = message.loss_weight_size();
  if (given != 0 && static_cast<std::size_t>(given) != view.tops.size()) {
    return wrong_loss_weights(message, view.tops.size());
  }
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    const int index = static_cast<int>(i);
    const float weight =
        given != 0 ? message.loss_weight(index) : view.layer->default_loss_weight(index);
    if (!std::isfinite(weight)) {
      return layer_error(message, "its loss_weight is not a finite number");
    }
    graph.nodes.back().loss_weights.push_back(weight);
  }
  return {};
}

// A label cannot have a gradient. A training net that needs one there is a mistake; a test net is
// not differentiated, so there the wish is dropped.
Result<void> Net::Impl::choose_backward() {
  std::vector<BackwardTraits> traits;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    traits.push_back(backward_traits(built[layer], messages[layer]));
  }
  const BackwardPlan plan = plan_backward(graph, traits, is_forced);
  if (!plan.refused.empty() && options.phase == Phase::kTrain) {
    const auto [layer, bottom] = plan.refused.front();
    const std::string& blob = built[layer].bottom_names[bottom];
    if (!traits[layer].propagate_down.empty()) {
      return layer_error(messages[layer],
                         fmt::format("propagate_down is true for bottom '{}', which cannot have a "
                                     "gradient here; set it to false there",
                                     blob));
    }
    return layer_error(messages[layer],
                       fmt::format("bottom '{}' depends on trained parameters, but this layer "
                                   "cannot propagate a gradient to it; set propagate_down: "
                                   "false there",
                                   blob));
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    graph.nodes[layer].needs_backward = plan.needs_backward[layer];
    graph.nodes[layer].propagate = plan.propagate[layer];
  }
  for (std::size_t blob = 0; blob < blobs.size(); ++blob) {
    graph.blobs[blob].needs_grad = plan.needs_grad[blob];
  }
  return {};
}

// Outputs come in the order of their names, as in Caffe's log.
void Net::Impl::collect_outputs() { output_names.assign(unread.begin(), unread.end()); }

}  // namespace speedo
