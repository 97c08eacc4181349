#include "nets/random_net.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/random.hpp>

#include "nets/window_draw.hpp"

namespace speedo::nets {
namespace {

constexpr std::int64_t kProductsMax = 2'000'000;  // of one convolution's forward pass
constexpr std::int64_t kElementsMax = 60'000;     // of a blob
// Of a Softmax: in a longer sum of equal floats the rounding of each term goes the same way.
constexpr std::int64_t kClassesMax = 1000;

struct Blob {
  std::string name;
  Sizes dims;
  bool is_read = false;
  // Whether a layer may write over it: nobody has read it yet, and what made it does not look at
  // it again in its backward pass.
  bool is_free = false;
};

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : draw_(seed) {
    text_ = fmt::format("name: 'seed {}'\nforce_backward: true\n", seed);
  }

  std::string net() {
    is_test_ = draw_.chance(0.15F);
    if (is_test_) text_ += "state { phase: TEST }\n";
    input("data", first_dims());
    for (std::int64_t step = draw_.between(1, 6); step > 0; --step) {
      while (!add_step()) {
      }
    }
    end();
    return text_;
  }

 private:
  using Step = bool (Drawer::*)(const Blob& bottom);

  Sizes first_dims() {
    Sizes dims{draw_.between(1, 4), draw_.channels()};
    const std::int64_t axes = draw_.pick<std::int64_t>({1, 2, 2, 2, 2, 2, 2, 2, 2, 3});
    const std::int64_t longest = axes == 3 ? 6 : 20;
    const std::int64_t side = draw_.between(1, longest);
    const bool is_square = draw_.chance(0.5F);
    for (std::int64_t i = 0; i < axes; ++i) {
      dims.push_back(is_square ? side : draw_.between(1, longest));
    }
    return dims;
  }

  // Mostly the newest blob; else any, so that some are read twice and some paths end early.
  bool add_step() {
    static const std::vector<Step> kSteps{
        &Drawer::convolution,   &Drawer::convolution, &Drawer::convolution, &Drawer::convolution,
        &Drawer::convolution,   &Drawer::convolution, &Drawer::pooling,     &Drawer::pooling,
        &Drawer::deconvolution, &Drawer::deconvolution,
        &Drawer::lrn,           &Drawer::batch_norm,  &Drawer::batch_norm,  &Drawer::scale,
        &Drawer::bias,          &Drawer::activation,  &Drawer::activation,  &Drawer::join,
        &Drawer::join,          &Drawer::concat,      &Drawer::slice,       &Drawer::inner_product,
        &Drawer::inner_product, &Drawer::flatten,     &Drawer::softmax,     &Drawer::dropout,
        &Drawer::mvn,           &Drawer::tile,        &Drawer::crop,        &Drawer::im2col};
    const std::size_t any = draw_.below(blobs_.size());
    const std::size_t at = draw_.chance(0.7F) ? blobs_.size() - 1 : any;
    const std::size_t step = draw_.below(kSteps.size());
    const Blob bottom = blobs_[at];
    return (this->*kSteps[step])(bottom);
  }

  // The layers. Each returns false, having changed nothing, where it does not fit the bottom.

  bool convolution(const Blob& bottom) {
    const auto drawn = draw_convolution(draw_, bottom.dims, kProductsMax);
    if (!drawn || count_of(drawn->dims) > kElementsMax) return false;
    append("Convolution", {bottom.name}, drawn->dims, drawn->options, true);
    return true;
  }

  bool deconvolution(const Blob& bottom) {
    const auto drawn = draw_deconvolution(draw_, bottom.dims, kProductsMax);
    if (!drawn || count_of(drawn->dims) > kElementsMax) return false;
    append("Deconvolution", {bottom.name}, drawn->dims, drawn->options, true);
    return true;
  }

  bool pooling(const Blob& bottom) {
    if (bottom.dims.size() != 4) return false;
    const auto drawn = draw_pooling(draw_, bottom.dims);
    if (!drawn) return false;
    append("Pooling", {bottom.name}, drawn->dims, drawn->options, true);
    return true;
  }

  bool lrn(const Blob& bottom) {
    if (bottom.dims.size() != 4) return false;
    const bool within = draw_.chance(0.4F);
    const std::string options = fmt::format(
        "lrn_param {{ local_size: {} norm_region: {} alpha: {} beta: {} k: {} }}",
        draw_.pick<std::int64_t>({1, 3, 3, 5, 5, 7}), within ? "WITHIN_CHANNEL" : "ACROSS_CHANNELS",
        draw_.pick<double>({0.0001, 0.5, 2.0}), draw_.pick<double>({0.5, 0.75, 0.75, 1.25}),
        within ? 1 : draw_.pick<int>({1, 1, 2}));
    append("LRN", {bottom.name}, bottom.dims, options, false);
    return true;
  }

  // With few values a channel, a deviation near zero would blow up every rounding.
  bool batch_norm(const Blob& bottom) {
    if (count_of(bottom.dims) / bottom.dims[1] < 8) return false;
    std::string options;
    if (draw_.chance(0.2F)) options = "batch_norm_param { use_global_stats: true }";
    append_or_cover("BatchNorm", bottom, options, true);
    if (!draw_.chance(0.6F)) return true;
    append_or_cover("Scale", blobs_.back(), "scale_param { bias_term: true }", true);
    if (draw_.chance(0.5F)) append_or_cover("ReLU", blobs_.back(), "", false);
    return true;
  }

  bool scale(const Blob& bottom) {
    const std::string options =
        fmt::format("scale_param {{ bias_term: {} axis: {} num_axes: {} }}", draw_.chance(0.5F),
                    draw_.pick<int>({1, 1, 1, 0}), draw_.pick<int>({1, 1, -1}));
    append_or_cover("Scale", bottom, options, true);
    return true;
  }

  bool bias(const Blob& bottom) {
    append_or_cover("Bias", bottom, "", true);
    return true;
  }

  bool activation(const Blob& bottom) {
    switch (draw_.below(8)) {
      case 0:
      case 1:
        append_or_cover("ReLU", bottom, "", false);
        break;
      case 2:
        append_or_cover("ReLU", bottom, "relu_param { negative_slope: 0.1 }", false);
        break;
      case 3:
        append_or_cover("PReLU", bottom,
                        draw_.chance(0.3F) ? "prelu_param { channel_shared: true }" : "", true);
        break;
      case 4:
        append_or_cover("Sigmoid", bottom, "", false);
        break;
      case 5:
        append_or_cover("TanH", bottom, "", false);
        break;
      case 6:
        append_or_cover(draw_.pick<std::string>({"AbsVal", "BNLL", "ELU", "Swish"}), bottom, "",
                        false);
        break;
      default:
        append("Power", {bottom.name}, bottom.dims,
               fmt::format("power_param {{ power: {} scale: {} shift: {} }}",
                           draw_.pick<int>({1, 2, 3}), draw_.pick<double>({1.0, -0.5}),
                           draw_.pick<double>({0.0, 0.25})),
               false);
    }
    return true;
  }

  // Two paths from the bottom, put together again element by element; or the bottom and one path.
  bool join(const Blob& bottom) {
    const auto path = draw_same_size_convolution(draw_, bottom.dims, kProductsMax);
    if (!path) return false;
    std::vector<std::string> paths;
    const Sizes dims = path->dims;
    const bool past_path = dims == bottom.dims && draw_.chance(0.5F);
    const std::string options = path->options + (past_path ? "" : draw_sharing());
    paths.push_back(append("Convolution", {bottom.name}, dims, options, true));
    if (draw_.chance(0.4F)) paths.back() = append_or_cover("ReLU", blobs_.back(), "", false);
    paths.push_back(past_path ? bottom.name
                              : append("Convolution", {bottom.name}, dims, options, true));
    if (draw_.chance(0.5F)) std::swap(paths[0], paths[1]);
    const std::string how = draw_.pick<std::string>({"", "eltwise_param { coeff: 0.5 coeff: -1 }",
                                                     "eltwise_param { operation: MAX }",
                                                     "eltwise_param { operation: PROD }", ""});
    append("Eltwise", paths, dims, how, true);
    return true;
  }

  // With a blob that agrees on every axis but the channels, or with itself.
  bool concat(const Blob& bottom) {
    std::vector<std::string> parts{bottom.name};
    Sizes dims = bottom.dims;
    for (const Blob& other : blobs_) {
      Sizes alike = other.dims;
      if (alike.size() != bottom.dims.size()) continue;
      alike[1] = bottom.dims[1];
      const bool is_itself = other.name == bottom.name;
      if (alike != bottom.dims || (is_itself && !draw_.chance(0.3F)) || parts.size() > 2) continue;
      parts.push_back(other.name);
      dims[1] += other.dims[1];
    }
    if (parts.size() == 1) return false;
    append("Concat", parts, dims, "", true);
    return true;
  }

  bool slice(const Blob& bottom) {
    const std::int64_t channels = bottom.dims[1];
    if (channels < 2) return false;
    const std::int64_t point = draw_.between(1, channels - 1);
    const std::string name = next_name();
    text_ += fmt::format(
        "layer {{ name: '{0}' type: 'Slice' bottom: '{1}' top: '{0}a' top: '{0}b' slice_param {{ "
        "axis: 1 slice_point: {2} }} }}\n",
        name, bottom.name, point);
    note_read(bottom.name);
    Sizes first = bottom.dims, second = bottom.dims;
    first[1] = point;
    second[1] = channels - point;
    blobs_.push_back({name + "a", first, false, true});
    blobs_.push_back({name + "b", second, false, true});
    return true;
  }

  bool inner_product(const Blob& bottom) {
    const std::int64_t outputs = draw_.channels();
    if (count_of(bottom.dims) * outputs > kProductsMax) return false;
    const Sizes dims{bottom.dims[0], outputs};
    const std::string sharing = draw_sharing();
    const std::string options =
        fmt::format("inner_product_param {{ num_output: {} bias_term: {} transpose: {} }}{}",
                    outputs, draw_.chance(0.7F), draw_.chance(0.2F), sharing);
    const std::string first = append("InnerProduct", {bottom.name}, dims, options, true);
    if (sharing.empty()) return true;
    append("Eltwise", {first, append("InnerProduct", {bottom.name}, dims, options, true)}, dims,
           "eltwise_param { coeff: 0.5 coeff: -1 }", true);
    return true;
  }

  bool dropout(const Blob& bottom) {
    append_or_cover("Dropout", bottom,
                    fmt::format("dropout_param {{ dropout_ratio: {} }}",
                                draw_.pick<double>({0.5, 0.25, 0.75, 0.0})),
                    true);
    return true;
  }

  bool flatten(const Blob& bottom) {
    const std::int64_t row = count_of(bottom.dims) / bottom.dims[0];
    append("Flatten", {bottom.name}, {bottom.dims[0], row}, "", false);
    return true;
  }

  bool softmax(const Blob& bottom) {
    if (bottom.dims[1] > kClassesMax) return false;
    append("Softmax", {bottom.name}, bottom.dims, "", false);
    return true;
  }

  // As with batch_norm(), of rows with few values the deviation may be near zero.
  bool mvn(const Blob& bottom) {
    const bool across = draw_.chance(0.3F);
    const std::int64_t items = across ? bottom.dims[0] : bottom.dims[0] * bottom.dims[1];
    if (bottom.dims.size() != 4 || count_of(bottom.dims) / items < 8) return false;
    append_or_cover("MVN", bottom,
                    fmt::format("mvn_param {{ across_channels: {} normalize_variance: {} }}",
                                across, draw_.chance(0.7F)),
                    false);
    return true;
  }

  bool tile(const Blob& bottom) {
    const auto axis = draw_.below(bottom.dims.size());
    const std::int64_t tiles = draw_.between(1, 3);
    Sizes dims = bottom.dims;
    dims[axis] *= tiles;
    if (axis == 0 || count_of(dims) > kElementsMax) return false;
    append("Tile", {bottom.name}, dims,
           fmt::format("tile_param {{ axis: {} tiles: {} }}", axis, tiles), true);
    return true;
  }

  // To the size of an input made for it.
  bool crop(const Blob& bottom) {
    Sizes dims = bottom.dims;
    std::string offsets;
    for (std::size_t i = 1; i < dims.size(); ++i) {
      const std::int64_t offset = draw_.between(0, dims[i] - 1);
      dims[i] = draw_.between(1, dims[i] - offset);
      offsets += fmt::format(" offset: {}", offset);
    }
    const std::string size = next_name();
    input(size, dims);
    const std::string top = fmt::format("b{}", ++blob_count_);
    layer("Crop", {bottom.name, size}, top, fmt::format("crop_param {{ axis: 1{} }}", offsets));
    note_read(bottom.name);
    blobs_.push_back({top, dims, false, true});
    return true;
  }

  bool im2col(const Blob& bottom) {
    if (bottom.dims.size() < 3) return false;
    const std::int64_t kernel = draw_.between(1, 3), stride = draw_.between(1, 2);
    const std::int64_t pad = draw_.between(0, 1);
    Sizes dims = bottom.dims;
    for (std::size_t i = 2; i < dims.size(); ++i) {
      if (dims[i] + 2 * pad < kernel) return false;
      dims[i] = (dims[i] + 2 * pad - kernel) / stride + 1;
      dims[1] *= kernel;
    }
    if (count_of(dims) > kElementsMax) return false;
    append("Im2col", {bottom.name}, dims,
           fmt::format("convolution_param {{ kernel_size: {} stride: {} pad: {} }}", kernel, stride,
                       pad),
           true);
    return true;
  }

  // Every blob that nothing has read gets a loss, or stays an output if there is a loss already.
  void end() {
    std::vector<Blob> open;
    for (const Blob& blob : blobs_) {
      if (!blob.is_read) open.push_back(blob);
    }
    SPEEDO_ASSERT(!open.empty());
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (i == 0 || draw_.chance(0.8F)) loss(open[i]);
    }
  }

  void loss(const Blob& bottom) {
    const std::string weight = draw_.pick<std::string>({"", "", "loss_weight: 0.25"});
    const std::string name = next_name();
    const bool may_be_softmax = bottom.dims[1] > 1 && bottom.dims[1] <= kClassesMax;
    const bool is_softmax = may_be_softmax && draw_.chance(0.4F);
    Sizes dims = bottom.dims;
    if (is_softmax) dims.erase(dims.begin() + 1);
    std::string type = "SoftmaxWithLoss", options;
    if (is_softmax) {
      options = draw_.pick<std::string>(
          {"", "loss_param { ignore_label: 0 }", "loss_param { normalization: BATCH_SIZE }"});
    } else {
      type = draw_.pick<std::string>(
          {"EuclideanLoss", "EuclideanLoss", "SigmoidCrossEntropyLoss", "Reduction"});
    }
    if (type == "Reduction") {
      // A sum or one of squares would leave a normalization before it nothing but rounding.
      options = draw_.pick<std::string>({"reduction_param { operation: ASUM }",
                                         "reduction_param { axis: 1 operation: ASUM coeff: 2 }"});
      layer(type, {bottom.name}, name, options + " loss_weight: 0.5");
      return;
    }
    input("target_" + name, dims);
    text_ += fmt::format(
        "layer {{ name: '{0}' type: '{1}' bottom: '{2}' bottom: 'target_{0}' top: '{0}' {3} {4} "
        "}}\n",
        name, type, bottom.name, options, weight);
  }

  // Now and then a name for the weights of two layers that are to have the same.
  std::string draw_sharing() {
    if (!draw_.chance(0.25F)) return "";
    return fmt::format(" param {{ name: 'shared{}' }}", layer_count_);
  }

  // Text.

  std::string next_name() { return fmt::format("l{}", ++layer_count_); }

  std::vector<Blob>::iterator find(const std::string& name) {
    const auto found = std::find_if(blobs_.begin(), blobs_.end(),
                                    [&](const Blob& blob) { return blob.name == name; });
    SPEEDO_ASSERT(found != blobs_.end());
    return found;
  }

  void note_read(const std::string& name) {
    find(name)->is_read = true;
    find(name)->is_free = false;
  }

  void input(const std::string& name, const Sizes& dims) {
    text_ +=
        fmt::format("layer {{ name: '{0}' type: 'Input' top: '{0}' input_param {{ shape {{ ", name);
    for (const std::int64_t dim : dims) text_ += fmt::format("dim: {} ", dim);
    text_ += "} } }\n";
    if (name == "data") blobs_.push_back({name, dims, false, true});
  }

  void layer(const std::string& type, const std::vector<std::string>& bottoms,
             const std::string& top, const std::string& options) {
    text_ += fmt::format("layer {{ name: '{}' type: '{}' bottom: '{}' top: '{}' {} }}\n",
                         next_name(), type, fmt::join(bottoms, "' bottom: '"), top, options);
  }

  // A layer with a top of its own, whose name is returned.
  std::string append(const std::string& type, const std::vector<std::string>& bottoms,
                     const Sizes& dims, const std::string& options, bool is_free) {
    const std::string top = fmt::format("b{}", ++blob_count_);
    layer(type, bottoms, top, options);
    for (const std::string& bottom : bottoms) note_read(bottom);
    blobs_.push_back({top, dims, false, is_free});
    return top;
  }

  // A layer that works on its bottom in place, where that may be, and mostly is. Its top is the
  // newest blob then, too.
  std::string append_or_cover(const std::string& type, const Blob& bottom,
                              const std::string& options, bool is_free) {
    const Blob top{bottom.name, bottom.dims, false, is_free};
    if (!bottom.is_free || !draw_.chance(0.7F)) {
      return append(type, {top.name}, top.dims, options, is_free);
    }
    layer(type, {top.name}, top.name, options);
    blobs_.erase(find(top.name));
    blobs_.push_back(top);
    return top.name;
  }

  Draw draw_;
  std::string text_;
  std::vector<Blob> blobs_;
  bool is_test_ = false;
  int layer_count_ = 0, blob_count_ = 0;
};

}  // namespace

std::string draw_net(std::uint64_t seed) { return Drawer(seed).net(); }

}  // namespace speedo::nets
