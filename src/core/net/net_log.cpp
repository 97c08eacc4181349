#include "core/net/net_log.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/log_lines.hpp"
#include "core/net/net_impl.hpp"
#include "core/prototxt.hpp"
#include "core/shown_names.hpp"

namespace speedo {
namespace {

// "8 6 (48)"; of a scalar, "(1)".
std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape.dims()) text += fmt::format("{} ", extent);
  return text + fmt::format("({})", shape.count());
}

void log_need(const std::string& layer, bool needs_backward) {
  SPEEDO_INFO("{} {} backward computation.", layer, needs_backward ? "needs" : "does not need");
}

}  // namespace

void log_rule_unmet(const std::string& why) { SPEEDO_INFO("{}", why); }

void log_parameters(const caffe::NetState& state, const caffe::NetParameter& net) {
  caffe::NetParameter shown = net;
  *shown.mutable_state() = state;
  for (caffe::LayerParameter& layer : *shown.mutable_layer()) layer.clear_blobs();
  show_names(shown);
  SPEEDO_INFO_LINES("Initializing net from parameters: \n{}", message_text(shown));
}

void log_changed_losses(const caffe::NetState& state, const std::vector<std::string>& lines) {
  if (state.phase() != caffe::TRAIN) return;
  for (const std::string& line : lines) SPEEDO_WARN("{}", line);
}

void log_creation(const caffe::LayerParameter& message) {
  SPEEDO_INFO("Creating layer {}", message.name());
  SPEEDO_INFO("Creating Layer {}", message.name());
  for (const std::string& bottom : message.bottom()) {
    SPEEDO_INFO("{} <- {}", message.name(), bottom);
  }
  for (int i = 0; i < message.top_size(); ++i) {
    const bool in_place = i < message.bottom_size() && message.bottom(i) == message.top(i);
    SPEEDO_INFO("{} -> {}{}", message.name(), message.top(i), in_place ? " (in-place)" : "");
  }
}

void log_sharing(const std::string& parameter, const ParameterSlot& owner) {
  SPEEDO_INFO("Sharing parameters '{}' owned by layer '{}', param index {}", parameter, owner.layer,
              owner.index);
}

// `first`: the layer's place in the net, or that of the first of those that stand for it.
void Net::Impl::log_set_up(const caffe::LayerParameter& message, std::size_t first) {
  const bool is_expanded = !built[first].expanded_from.empty();
  std::vector<std::string> tops(message.top().begin(), message.top().end());
  if (!is_expanded) {
    tops = built[first].top_names;
    for (auto i = static_cast<std::size_t>(message.top_size()); i < tops.size(); ++i) {
      SPEEDO_INFO("{} -> (automatic)", message.name());
    }
  }
  SPEEDO_INFO("Setting up {}", message.name());
  for (const std::string& top : tops) {
    const std::size_t blob = blob_index.at(top);
    const Shape& shape = blobs[blob].tensor->shape();
    SPEEDO_INFO("Top shape: {}", shape_text(shape));
    float weight = 0.0F;
    for (std::size_t layer = first; layer < built.size(); ++layer) {
      const GraphNode& node = graph.nodes[layer];
      const auto place = std::find(node.tops.begin(), node.tops.end(), blob);
      if (place == node.tops.end()) continue;
      weight = node.loss_weights[static_cast<std::size_t>(place - node.tops.begin())];
    }
    if (weight != 0.0F) SPEEDO_INFO("    with loss weight {:g}", weight);
    logged_elements += shape.count();
  }
  SPEEDO_INFO("Memory required for data: {}",
              logged_elements * static_cast<std::int64_t>(sizeof(float)));
}

void Net::Impl::log_end_of_set_up() const {
  for (std::size_t end = layers.size(); end > 0;) {
    const std::size_t last = end - 1;
    const Expansion* const expansion = expansion_of(last);
    const std::size_t first = expansion != nullptr ? expansion->first : last;
    const bool needs_backward =
        std::any_of(graph.nodes.begin() + static_cast<std::ptrdiff_t>(first),
                    graph.nodes.begin() + static_cast<std::ptrdiff_t>(end),
                    [](const GraphNode& node) { return node.needs_backward; });
    log_need(expansion != nullptr ? expansion->message.name() : messages[last].name(),
             needs_backward);
    end = first;
  }
  for (const std::string& output : output_names) {
    SPEEDO_INFO("This network produces output {}", output);
  }
  SPEEDO_INFO("Network initialization done.");
}

}  // namespace speedo
