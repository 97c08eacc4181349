// Where parameters lie: in net order in one arena, shared by name as in Caffe.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "base/log.hpp"
#include "core/blob_proto.hpp"
#include "core/fillers.hpp"
#include "core/net/layer_traits.hpp"
#include "core/net/net_impl.hpp"
#include "core/net/net_log.hpp"

namespace speedo {
namespace {

constexpr std::uint64_t kFillStream = 1;
constexpr std::uint64_t kAloneFillStream = 4;  // of what a test net does not share

const caffe::ParamSpec& spec_of(const caffe::LayerParameter& message, int index) {
  return index < message.param_size() ? message.param(index) : caffe::ParamSpec::default_instance();
}

// A multiplier as the message of one layer gives it, or does not.
struct Multiplier {
  const char* what;
  bool given;
  float value;
};

// Takes a user's multiplier for a shared parameter, if it gives one.
Result<void> merge_multiplier(const caffe::LayerParameter& message, const std::string& name,
                              const Multiplier& multiplier, bool& known, float& shared) {
  const auto [what, given, value] = multiplier;
  if (!given) {
    return {};
  }
  if (known && value != shared) {
    return layer_error(message,
                       fmt::format("shares parameter '{}' with {} {}, but an earlier layer "
                                   "gives it {}; they must agree",
                                   name, what, value, shared));
  }
  known = true;
  shared = value;
  return {};
}

Result<void> check_shared_shape(const caffe::LayerParameter& message, const caffe::ParamSpec& spec,
                                const Shape& shape, const ParameterSlot& slot) {
  const bool permissive = spec.share_mode() == caffe::ParamSpec::PERMISSIVE;
  if (permissive ? shape.count() == slot.count() : shape == slot.shape) {
    return {};
  }
  return layer_error(
      message, fmt::format("shares parameter '{}' of layer '{}', whose shape {} does not "
                           "match its own {}{}",
                           spec.name(), slot.layer, to_string(slot.shape), to_string(shape),
                           permissive ? "" : " (share_mode: PERMISSIVE compares counts only)"));
}

// Stored weights that came inside the net's own message win over the filler, as in Caffe.
Result<void> first_values(const caffe::LayerParameter& message, int index,
                          const ParameterRequest& request, Random& random,
                          std::span<float> values) {
  if (message.blobs_size() > 0) {
    if (index >= message.blobs_size() || !fits(message.blobs(index), request.shape)) {
      return layer_error(message,
                         fmt::format("the weights stored in the net do not fit parameter {} of "
                                     "shape {}",
                                     index, to_string(request.shape)),
                         ErrorCode::kMismatch);
    }
    return read_values(message.blobs(index), values);
  }
  if (request.filler == nullptr) {
    return {};
  }
  if (auto filled = fill(*request.filler, request.shape, random, values); !filled) {
    return layer_error(message, fmt::format("parameter {}: {}", index, filled.error().message));
  }
  return {};
}

}  // namespace

// Those that no other net gives.
Result<void> Net::Impl::place_parameters() {
  std::map<std::string, const Expansion*> trained_layers;
  for (std::size_t layer = 0; layer < built.size(); ++layer) {
    const bool is_given = !built[layer].slots.empty();
    const std::size_t count = is_given ? 0 : built[layer].layer->parameter_requests().size();
    const Expansion* const expansion = expansion_of(layer);
    const std::string& stored_name =
        (expansion != nullptr ? expansion->message : messages[layer]).name();
    const auto known = count > 0 ? trained_layers.emplace(stored_name, expansion)
                                 : std::pair(trained_layers.end(), true);
    if (!known.second && (expansion == nullptr || known.first->second != expansion)) {
      return layer_error(messages[layer],
                         "another layer with parameters has the same name; weights "
                         "are stored by layer name, so rename one of them");
    }
    const std::size_t begin = placed->layout.slots().size();
    for (std::size_t i = 0; i < count; ++i) {
      SPEEDO_ASSIGN(const std::size_t slot, place_parameter(layer, static_cast<int>(i)));
      placed_slots[layer].push_back(slot);
    }
    if (placed != parameters) continue;
    built[layer].slots = placed_slots[layer];
    own_slots[layer] = {begin, placed->layout.slots().size()};
  }
  return {};
}

// The name and number by which weight files know a layer's parameter.
std::pair<std::string, int> Net::Impl::stored_place(std::size_t layer, int index) const {
  const Expansion* const expansion = expansion_of(layer);
  if (expansion == nullptr) return {messages[layer].name(), index};
  const std::vector<int>& numbers = expansion->numbers[layer - expansion->first];
  return {expansion->message.name(), numbers[static_cast<std::size_t>(index)]};
}

Result<std::size_t> Net::Impl::place_parameter(std::size_t layer, int index) {
  const caffe::LayerParameter& message = messages[layer];
  const caffe::ParamSpec& spec = spec_of(message, index);
  const ParameterRequest& request =
      built[layer].layer->parameter_requests()[static_cast<std::size_t>(index)];
  const Shape& shape = request.shape;
  const auto known = spec.name().empty() ? slot_of_name.end() : slot_of_name.find(spec.name());
  if (known == slot_of_name.end()) {
    const auto [stored_layer, number] = stored_place(layer, index);
    const std::size_t slot =
        placed->layout.add({stored_layer, number, spec.name(), shape, 0, spec.lr_mult(),
                            spec.decay_mult(), request.is_statistic});
    slot_uses.push_back({layer, index, spec.has_lr_mult(), spec.has_decay_mult()});
    if (!spec.name().empty()) {
      slot_of_name[spec.name()] = slot;
    }
    return slot;
  }
  const std::size_t slot = known->second;
  ParameterSlot& owner = placed->layout.slot(slot);
  if (options.logs_set_up) log_sharing(spec.name(), owner);
  SPEEDO_TRY(check_shared_shape(message, spec, shape, owner));
  if (owner.is_statistic != request.is_statistic) {
    return layer_error(message, fmt::format("parameter '{}' is learned here or in layer '{}' and "
                                            "kept by forward passes in the other: they cannot "
                                            "share it",
                                            spec.name(), owner.layer));
  }
  const Multiplier lr{"lr_mult", spec.has_lr_mult(), spec.lr_mult()};
  const Multiplier decay{"decay_mult", spec.has_decay_mult(), spec.decay_mult()};
  SPEEDO_TRY(
      merge_multiplier(message, spec.name(), lr, slot_uses[slot].has_lr_mult, owner.lr_mult));
  SPEEDO_TRY(merge_multiplier(message, spec.name(), decay, slot_uses[slot].has_decay_mult,
                              owner.decay_mult));
  return slot;
}

// A layer that the training net lacks has parameters of its own, as in Caffe. There one that shares
// a parameter of the training net is left with what that parameter was before training.
Result<void> Net::Impl::check_alone(std::size_t layer, const Impl& source) const {
  for (const caffe::ParamSpec& spec : messages[layer].param()) {
    if (spec.name().empty() || source.slot_of_name.count(spec.name()) == 0) continue;
    return layer_error(messages[layer],
                       fmt::format("shares parameter '{}' of the training net, which has no layer "
                                   "of this name; give the training net this layer too, or the "
                                   "parameter another name",
                                   spec.name()),
                       ErrorCode::kMismatch);
  }
  if (!options.plan_only) {
    SPEEDO_WARN("layer '{}' ({}) is in the test net alone: its parameters are not trained",
                messages[layer].name(), messages[layer].type());
  }
  return {};
}

bool Net::Impl::has_layer(const Impl& net, const std::string& layer) {
  const auto is_it = [&](const LayerView& view) { return view.layer->name() == layer; };
  const auto is_expanded = [&](const Expansion& each) { return each.message.name() == layer; };
  return std::ranges::any_of(net.built, is_it) || std::ranges::any_of(net.expansions, is_expanded);
}

Result<void> Net::Impl::share_with(const Net& owner) {
  const Impl& source = *owner.impl_;
  SPEEDO_ASSERT(options.plan_only || !source.options.plan_only);
  parameters = source.parameters;
  for (std::size_t layer = 0; layer < built.size(); ++layer) {
    const auto& requests = built[layer].layer->parameter_requests();
    if (requests.empty()) continue;
    if (!has_layer(source, stored_place(layer, 0).first)) {
      SPEEDO_TRY(check_alone(layer, source));
      continue;
    }
    SPEEDO_ASSIGN(built[layer].slots, expansion_of(layer) != nullptr
                                          ? slots_of_expansion(layer, source)
                                          : slots_of_layer(layer, source));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Shape& shape = parameters->layout.slots()[built[layer].slots[i]].shape;
      const int index = static_cast<int>(i);
      const bool is_permissive =
          index < messages[layer].param_size() &&
          messages[layer].param(index).share_mode() == caffe::ParamSpec::PERMISSIVE;
      const bool fits = is_permissive ? shape.count() == requests[i].shape.count()
                                      : shape == requests[i].shape;
      if (!fits) {
        return layer_error(messages[layer],
                           fmt::format("parameter {} has shape {} in the test net and {} in the "
                                       "training net",
                                       i, to_string(requests[i].shape), to_string(shape)),
                           ErrorCode::kMismatch);
      }
    }
  }
  return {};
}

// Those of the training net's layer of that name.
Result<std::vector<std::size_t>> Net::Impl::slots_of_layer(std::size_t layer,
                                                           const Impl& source) const {
  const std::size_t count = built[layer].layer->parameter_requests().size();
  const LayerView* match = nullptr;
  for (const LayerView& candidate : source.built) {
    if (candidate.layer->name() == messages[layer].name() && !candidate.slots.empty()) {
      match = &candidate;
    }
  }
  if (match != nullptr && match->slots.size() == count) return match->slots;
  return layer_error(messages[layer],
                     fmt::format("the test net has {} parameters here, the training net's layer "
                                 "of this name {}; their weights cannot be shared",
                                 count, match == nullptr ? 0 : match->slots.size()),
                     ErrorCode::kMismatch);
}

// Those of the training net's expanded layer of that name, which may be another graph.
Result<std::vector<std::size_t>> Net::Impl::slots_of_expansion(std::size_t layer,
                                                               const Impl& source) const {
  const auto& requests = built[layer].layer->parameter_requests();
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto [stored_layer, number] = stored_place(layer, static_cast<int>(i));
    for (const Expansion& other : source.expansions) {
      if (other.message.name() != stored_layer || number >= other.parameter_count()) continue;
      slots.push_back(other.slots[static_cast<std::size_t>(number)]);
    }
    if (slots.size() != i + 1) {
      return layer_error(expansion_of(layer)->message,
                         fmt::format("parameter {} is not in the training net's layer of this "
                                     "name; their weights cannot be shared",
                                     number),
                         ErrorCode::kMismatch);
    }
  }
  return slots;
}

Result<void> Net::Impl::create_arenas() {
  if (options.plan_only) return {};
  const std::int64_t count = placed->layout.element_count();
  if (placed != parameters && count == 0) return {};
  SPEEDO_ASSIGN(placed->weights, Arena::create(*options.backend, count));
  if (placed != parameters) return fill_parameters();
  SPEEDO_ASSIGN(placed->gradients, options.shares_gradients
                                       ? Arena::create_shared(*options.backend, count)
                                       : Arena::create(*options.backend, count));
  return fill_parameters();
}

Result<void> Net::Impl::fill_parameters() {
  const std::uint64_t fill_stream = placed == parameters ? kFillStream : kAloneFillStream;
  std::vector<float> values;
  for (std::size_t i = 0; i < slot_uses.size(); ++i) {
    const SlotUse& owner = slot_uses[i];
    const ParameterSlot& slot = placed->layout.slots()[i];
    values.assign(static_cast<std::size_t>(slot.count()), 0.0F);
    Random stream = Random::derive(options.seed, {fill_stream, i});
    SPEEDO_TRY(first_values(
        messages[owner.layer], owner.index,
        built[owner.layer].layer->parameter_requests()[static_cast<std::size_t>(owner.index)],
        stream, values));
    if (!values.empty()) {
      options.backend->device().upload(placed->weights.data() + slot.offset, values);
    }
  }
  return {};
}

void Net::Impl::bind_parameters() {
  for (std::size_t layer = 0; layer < built.size(); ++layer) {
    const auto& requests = built[layer].layer->parameter_requests();
    const bool is_alone = built[layer].slots.empty();
    NetParameters& home = is_alone ? *placed : *parameters;
    const std::vector<std::size_t>& slots = is_alone ? placed_slots[layer] : built[layer].slots;
    std::vector<Tensor*> bound;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::int64_t offset = home.layout.slots()[slots[i]].offset;
      auto& tensor = parameter_tensors.emplace_back(std::make_unique<Tensor>(requests[i].shape));
      if (!options.plan_only) {
        tensor->bind(home.weights.data() + offset,
                     is_alone ? nullptr : home.gradients.data() + offset);
      }
      bound.push_back(tensor.get());
    }
    std::vector<bool> needs_grad = backward_traits(built[layer], messages[layer]).trained;
    if (is_forced) needs_grad.assign(needs_grad.size(), true);
    if (is_alone) needs_grad.assign(needs_grad.size(), false);
    built[layer].layer->bind_parameters(std::move(bound), std::move(needs_grad));
  }
}

}  // namespace speedo
