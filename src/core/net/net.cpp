#include <speedo/core/net.hpp>

#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "base/trace.hpp"
#include "core/net/net_impl.hpp"
#include "core/suggest.hpp"

namespace speedo {
namespace {

constexpr std::uint64_t kForwardStream = 3;

}  // namespace

Error with_sources(Error error, const std::vector<caffe::LayerParameter>& layers) {
  if (error.code != ErrorCode::kData) return error;
  for (const caffe::LayerParameter& layer : layers) {
    const std::string& source =
        layer.has_data_param() ? layer.data_param().source() : layer.hdf5_data_param().source();
    const bool is_named = error.message.find(source) != std::string::npos;
    if (!is_named) error.message += " (layer '" + layer.name() + "' reads '" + source + "')";
  }
  return error;
}

std::uint64_t BatchCursor::take() {
  if (taken_ == span_.count) {
    next_ = span_.next;
  }
  ++taken_;
  return next_++;
}

// The passes.

void Net::Impl::begin_forward() {
  const auto phase = static_cast<std::uint64_t>(options.phase);
  random = Random::derive(options.seed, {kForwardStream, phase, cursor.take()});
}

Result<float> Net::Impl::weighted_loss(std::size_t node) {
  double loss = 0.0;
  for (std::size_t i = 0; i < views[node].tops.size(); ++i) {
    const float weight = planned.nodes[node].loss_weights[i];
    if (weight == 0.0F) {
      continue;
    }
    Tensor& top = *views[node].tops[i];
    if (top.count() == 0) {
      continue;
    }
    if (top.count() == 1) {
      float value = 0.0F;
      options.backend->device().download({&value, 1}, top.data());
      loss += static_cast<double>(weight) * static_cast<double>(value);
    } else {
      // The layout plan keeps such a top plain.
      options.backend->fill(top.count(), weight, top.grad());
      loss += options.backend->dot(top.count(), top.data(), top.grad());
    }
  }
  return static_cast<float>(loss);
}

// The gradient of the loss by each of its terms is the term's weight, scaled.
void Net::Impl::begin_backward() {
  for (std::size_t node = 0; node < views.size(); ++node) {
    for (std::size_t i = 0; i < views[node].tops.size(); ++i) {
      const float weight = planned.nodes[node].loss_weights[i];
      if (weight != 0.0F) {
        Tensor& top = *views[node].tops[i];
        options.backend->fill(top.count(), gradient_scale * weight, top.grad());
      }
    }
  }
}

Bucket Net::Impl::bucket_of(SlotRange range) const {
  SPEEDO_ASSERT(!range.is_empty());
  const auto slots = parameters->layout.slots();
  const std::int64_t begin = slots[range.begin].offset;
  const std::int64_t end =
      range.end < slots.size() ? slots[range.end].offset : parameters->layout.element_count();
  return {begin, end - begin};
}

// A parameter's gradient is final after the first of its users, its owner, has run backward, or the
// layer that does it for the owner.
void Net::Impl::report_gradients(std::size_t node) {
  if (!gradient_ready || views[node].fused.backward) {
    return;
  }
  Device& device = options.backend->device();
  for (const SlotRange& range : node_slots[node].final) {
    gradient_ready(bucket_of(range), device.record(device.compute()));
  }
}

// The owner of a shared parameter is the first of its users.
Result<void> Net::Impl::ask_for_weights(std::size_t node) {
  if (!weights_needed) return {};
  for (const SlotRange& range : node_slots[node].needed) {
    SPEEDO_TRY(weights_needed(bucket_of(range)));
  }
  return {};
}

// The public face.

Net::Net(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Net::~Net() = default;

Result<std::unique_ptr<Net>> Net::create(const caffe::NetParameter& parameter,
                                         const NetOptions& options) {
  SPEEDO_ASSERT(options.backend != nullptr);
  auto impl = std::make_unique<Impl>(options);
  SPEEDO_TRY(impl->build(parameter));
  return std::unique_ptr<Net>(new Net(std::move(impl)));
}

Result<float> Net::forward_layer(std::size_t index) {
  if (index == 0) {
    SPEEDO_TRY(impl_->follow_batches());
    impl_->begin_forward();
  }
  SPEEDO_ASSERT(index < impl_->node_slots.size());  // Fails after a reshape() that failed.
  const LayerView& view = impl_->views[index];
  SPEEDO_TRY(impl_->ask_for_weights(index));
  SPEEDO_TRY(impl_->follow_shapes(index));
  if (!view.fused.forward && !(impl_->is_rehearsal && view.layer->writes_outside())) {
    if (auto done = view.layer->forward(view.bottoms, view.tops); !done) {
      return with_sources(std::move(done).error(), impl_->messages);
    }
    impl_->count_layer();
  }
  return impl_->weighted_loss(index);
}

void Net::backward_layer(std::size_t index) {
  SPEEDO_ASSERT(impl_->options.trains);
  if (index + 1 == impl_->views.size()) {
    impl_->begin_backward();
  }
  const LayerView& view = impl_->views[index];
  if (view.needs_backward && !view.fused.backward) {
    view.layer->backward(view.tops, view.propagate, view.bottoms);
    impl_->count_layer();
  }
}

Result<float> Net::forward() {
  const TraceSpan span("forward");
  double loss = 0.0;
  for (std::size_t layer = 0; layer < impl_->views.size(); ++layer) {
    SPEEDO_ASSIGN(const float term, forward_layer(layer));
    loss += static_cast<double>(term);
  }
  return static_cast<float>(loss);
}

Result<float> Net::rehearse() {
  impl_->is_rehearsal = true;
  Result<float> loss = forward();
  impl_->is_rehearsal = false;
  return loss;
}

Result<float> Net::rehearse_layer(std::size_t index) {
  impl_->is_rehearsal = true;
  Result<float> term = forward_layer(index);
  impl_->is_rehearsal = false;
  return term;
}

void Net::backward() {
  const TraceSpan span("backward");
  for (std::size_t layer = impl_->views.size(); layer-- > 0;) {
    backward_layer(layer);
    impl_->report_gradients(layer);
  }
}

void Net::clear_gradients() { impl_->clear_gradients(); }

void Net::set_gradient_scale(float scale) {
  SPEEDO_ASSERT(scale > 0.0F);
  impl_->gradient_scale = scale;
}

float Net::gradient_scale() const { return impl_->gradient_scale; }

void Net::unscale_gradients() {
  if (impl_->gradient_scale == 1.0F) return;
  Arena& arena = impl_->parameters->gradients;
  const float scale = 1.0F / impl_->gradient_scale;
  impl_->options.backend->axpby(arena.size(), scale, arena.data(), 0.0F, arena.data());
}

bool Net::has_finite_gradients() const {
  const Arena& arena = impl_->parameters->gradients;
  return impl_->options.backend->all_finite(arena.size(), arena.data());
}

void Net::on_gradient_ready(GradientReady hook) { impl_->gradient_ready = std::move(hook); }

void Net::on_weights_needed(WeightsNeeded hook) { impl_->weights_needed = std::move(hook); }

void Net::count_layers(std::atomic<std::uint64_t>* counter) { impl_->layer_counter = counter; }

void Net::set_batch_span(const BatchSpan& span) {
  impl_->cursor = BatchCursor(span);
  for (const auto& layer : impl_->layers) {
    layer->set_batch_span(span);
  }
}

Result<void> Net::give_arrays(const std::string& layer, std::span<const float> data,
                              std::span<const float> labels) {
  std::vector<std::string> names;
  for (const auto& one : impl_->layers) {
    if (one->name() == layer) return one->give_arrays(data, labels);
    names.push_back(one->name());
  }
  return config_error(
      fmt::format("there is no layer '{}' to give arrays to{}", layer, did_you_mean(layer, names)));
}

Result<void> Net::finish() {
  Result<void> first;
  for (const auto& layer : impl_->layers) {
    if (auto finished = layer->finish(); !finished && first) first = std::move(finished);
  }
  return first;
}

Result<void> Net::reshape() { return impl_->reshape(); }

const std::string& Net::name() const { return impl_->name; }

Phase Net::phase() const { return impl_->options.phase; }

Backend& Net::backend() const { return *impl_->options.backend; }

const std::vector<Net::LayerView>& Net::layers() const { return impl_->views; }

const std::vector<std::string>& Net::blob_names() const { return impl_->blob_names; }

Tensor* Net::blob(const std::string& name) const {
  const auto found = impl_->blob_index.find(name);
  return found == impl_->blob_index.end() ? nullptr : impl_->blobs[found->second].tensor.get();
}

const std::vector<std::string>& Net::output_names() const { return impl_->output_names; }

float Net::loss_weight(const std::string& blob) const {
  float weight = 0.0F;
  for (std::size_t layer = 0; layer < impl_->views.size(); ++layer) {
    for (std::size_t i = 0; i < impl_->views[layer].tops.size(); ++i) {
      if (impl_->views[layer].top_names[i] == blob) {
        weight = impl_->planned.nodes[layer].loss_weights[i];
      }
    }
  }
  return weight;
}

const ParameterLayout& Net::layout() const { return impl_->parameters->layout; }

Arena& Net::weights() { return impl_->parameters->weights; }

const Arena& Net::weights() const { return impl_->parameters->weights; }

Arena& Net::gradients() { return impl_->parameters->gradients; }

Net::Memory Net::memory() const {
  Memory memory = impl_->memory;
  for (const LayerView& view : impl_->views) {
    if (view.fused.forward && view.fused.backward) {
      continue;
    }
    memory.workspace_bytes += view.layer->workspace_bytes() + view.layer->info().workspace_bytes;
  }
  memory.scratch_bytes = impl_->options.backend->scratch_bytes();
  memory.parameter_bytes =
      impl_->placed->layout.element_count() * static_cast<std::int64_t>(sizeof(float));
  if (impl_->placed == impl_->parameters) memory.parameter_grad_bytes = memory.parameter_bytes;
  return memory;
}

}  // namespace speedo
