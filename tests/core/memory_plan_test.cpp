// What nets compute does not depend on which blobs share memory.

#include <speedo/backend/backend.hpp>

#include "net_run.hpp"
#include "net_support.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

const std::string kEvenImages = input("data", "dim: 2 dim: 3 dim: 8 dim: 8");
const std::string kEvenLabels = input("label", "dim: 2");

// Branches, in-place layers, blobs that nobody reads, gradients that nobody writes.
std::string branched_net() {
  const std::string pool = "pooling_param { kernel_size: 2 stride: 2 }";
  const std::string constant =
      "dummy_data_param { shape { dim: 2 dim: 16 dim: 4 dim: 4 } data_filler { value: 0.5 } }";
  const std::string scale =
      "layer { name: 'b/s' type: 'Scale' bottom: 'b' top: 'b' scale_param { bias_term: true } }\n";
  return kEvenLabels + kEvenImages + conv("a", "data", 8) + in_place("ReLU", "a") +
         conv("b", "a", 8) + in_place("BatchNorm", "b") + scale + in_place("ReLU", "b") +
         layer("sum", "Eltwise", {"a", "b"}) + in_place("ReLU", "sum") +
         layer("p", "Pooling", {"sum"}, pool) +
         layer("n", "LRN", {"p"}, "lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }") +
         conv("c", "n", 8) + layer("r", "ReLU", {"c"}) + layer("d", "Dropout", {"r"}) +
         layer("cat", "Concat", {"d", "p"}) + layer("s", "Sigmoid", {"cat"}) +
         layer("f", "Flatten", {"s"}) + product("score", "f") +
         "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'label' "
         "top: 'loss' top: 'probability' }\n" +
         layer("accuracy", "Accuracy", {"score", "label"}) +
         layer("fixed", "DummyData", {}, constant) + layer("shifted", "Eltwise", {"cat", "fixed"}) +
         product("side", "shifted") +
         layer("side_loss", "SoftmaxWithLoss", {"side", "label"}, "loss_weight: 0.3");
}

// `depth` convolutions one after another.
std::string deep_net(int depth) {
  std::string text = kEvenLabels + kEvenImages + conv("c0", "data", 8);
  for (int i = 1; i < depth; ++i) {
    const std::string before = "c" + std::to_string(i - 1);
    text += in_place("ReLU", before) + conv("c" + std::to_string(i), before, 8);
  }
  return text + product("score", "c" + std::to_string(depth - 1)) +
         layer("loss", "SoftmaxWithLoss", {"score", "label"});
}

// A residual block: the sum's gradient is also that of both summands.
std::string residual_net() {
  std::string text = kEvenLabels + kEvenImages + conv("x0", "data", 8);
  for (int i = 0; i < 3; ++i) {
    const std::string x = "x" + std::to_string(i), next = "x" + std::to_string(i + 1),
                      y = "y" + std::to_string(i);
    text += conv(y, x, 8) + in_place("BatchNorm", y) + layer(next, "Eltwise", {x, y}) +
            in_place("ReLU", next);
  }
  return text + product("score", "x3") + layer("loss", "SoftmaxWithLoss", {"score", "label"});
}

void compare_with_kept(const std::string& text, Backend& backend) {
  NetOptions options;
  const NetRun shared = run_net(text, backend, options, 3);
  options.keep_blobs = true;
  const NetRun kept = run_net(text, backend, options, 3);
  CHECK(shared.losses == kept.losses);
  CHECK(shared.parameter_gradients == kept.parameter_gradients);
  for (const auto& [name, values] : shared.values) CHECK(values == kept.values.at(name));
  CHECK(kept.memory.blob_bytes == kept.memory.unshared_bytes);
  CHECK(shared.memory.blob_bytes < 3 * shared.memory.unshared_bytes / 4);
}

TEST_CASE("sharing memory changes no bit", "[memory]") {
  for (const std::string& text :
       {branched_net(), deep_net(6), residual_net(), "force_backward: true " + branched_net()}) {
    INFO(text);
    for (const LayoutKind kind :
         {LayoutKind::kPlain, LayoutKind::kBlocked8, LayoutKind::kChannelsLast}) {
      compare_with_kept(text, *make_reference_backend(kind));
    }
    compare_with_kept(text, *test::make_backend(1));
    compare_with_kept(text, *test::make_backend(2));
  }
}

TEST_CASE("a net that does not train needs two blobs at a time", "[memory]") {
  const auto backend = make_reference_backend();
  NetOptions options;
  options.phase = Phase::kTest;
  options.trains = false;
  const NetRun test = run_net(deep_net(20), *backend, options);
  // The input stays, and two blobs of 8 channels take turns.
  const std::int64_t image = 2 * 8 * 8 * 4;
  CHECK(test.memory.blob_bytes <= (3 + 2 * 8) * image + 10 * 64);
  CHECK(test.memory.unshared_bytes > 20 * 8 * image);
  options.trains = true;
  CHECK(run_net(deep_net(20), *backend, options).losses == test.losses);
}

TEST_CASE("a blob that is summed several times is not overwritten meanwhile", "[memory]") {
  const auto backend = make_reference_backend();
  NetOptions options;
  options.phase = Phase::kTest;
  options.trains = false;
  const std::string text =
      kEvenImages + conv("a", "data", 4) +
      layer("sum", "Eltwise", {"a", "a", "a"}, "eltwise_param { coeff: 2 coeff: 3 coeff: 5 }") +
      layer("r", "ReLU", {"sum"}) + layer("twice", "Eltwise", {"r", "sum"});
  const NetRun shared = run_net(text, *backend, options);
  options.keep_blobs = true;
  const NetRun kept = run_net(text, *backend, options);
  CHECK(shared.values.at("twice") == kept.values.at("twice"));
}

TEST_CASE("a blob that is summed with itself has each summand's gradient", "[memory]") {
  const auto backend = make_reference_backend();
  for (const std::vector<std::string>& summands : {std::vector<std::string>{"a", "a"},
                                                   {"a", "a", "a"},
                                                   {"a", "a", "a", "a"},
                                                   {"a", "b", "a", "a"}}) {
    const std::string text = kEvenLabels + kEvenImages + conv("a", "data", 4) + conv("b", "a", 4) +
                             layer("sum", "Eltwise", summands) + product("score", "sum") +
                             layer("loss", "SoftmaxWithLoss", {"score", "label"});
    INFO(text);
    NetOptions options;
    const NetRun shared = run_net(text, *backend, options);
    options.keep_blobs = true;
    check_close("parameters", shared.parameter_gradients,
                run_net(text, *backend, options).parameter_gradients);
  }
}

TEST_CASE("an input that a layer changes in place is found by its name", "[memory]") {
  const auto backend = make_reference_backend();
  NetOptions options;
  options.backend = backend.get();
  const std::string type = GENERATE("Scale", "PReLU", "BatchNorm");
  INFO(type);
  const auto net =
      make_net(kEvenLabels + kEvenImages + in_place(type, "data") + product("score", "data") +
                   layer("loss", "SoftmaxWithLoss", {"score", "label"}),
               options);
  std::vector<float> losses;
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<float> images(2 * 3 * 8 * 8);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 7) - 2.0F;
    net->blob("data")->set_values(*backend, images);
    net->clear_gradients();
    const auto loss = net->forward();
    REQUIRE(loss.has_value());
    losses.push_back(*loss);
    net->backward();
    CHECK(backend->sum_abs(net->gradients().size(), net->gradients().data()) > 0.0);
  }
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("a sum, and a gradient that is handed on, stay where they are", "[memory]") {
  const auto backend = make_reference_backend();
  NetOptions options;
  options.backend = backend.get();
  options.may_fuse = false;
  const auto net = make_net(residual_net(), options);
  for (const Net::LayerView& view : net->layers()) {
    if (view.layer->type() != "Eltwise") continue;
    // The branch's values are not needed behind the sum, and nobody writes on its gradient.
    CHECK(view.bottoms[1]->data() == view.tops[0]->data());
    for (const Tensor* bottom : view.bottoms) CHECK(bottom->grad() == view.tops[0]->grad());
  }
  // Nor where the layer before makes the sum.
  options.may_fuse = true;
  const auto fused = make_net(residual_net(), options);
  int joints = 0;
  for (const Net::LayerView& view : fused->layers()) {
    if (view.layer->type() != "BatchNorm" || view.bottoms.size() == 1) continue;
    ++joints;
    CHECK(view.bottoms[1]->grad() == view.tops[0]->grad());
    CHECK(view.bottoms[0]->grad() != view.tops[0]->grad());
  }
  CHECK(joints > 0);
}

// The reference backend's maximum pooling finds each maximum again, the CPU's keeps where it was.
TEST_CASE("what an operation's backward pass reads stays until then", "[memory]") {
  const std::string text =
      kEvenLabels + kEvenImages + conv("a", "data", 8) +
      layer("p", "Pooling", {"a"}, "pooling_param { kernel_size: 2 stride: 2 }") +
      in_place("ReLU", "p") + product("score", "p") +
      layer("loss", "SoftmaxWithLoss", {"score", "label"});
  const auto reference = make_reference_backend();
  std::vector<std::vector<float>> gradients;
  std::vector<std::int64_t> bytes;
  for (Backend* backend : {reference.get(), &test_backend()}) {
    NetOptions options = net_options();
    options.backend = backend;
    const auto net = make_net(text, options);
    Random random(test::varied(4));
    std::vector<float> images(static_cast<std::size_t>(net->blob("data")->count()));
    for (float& value : images) value = random.uniform(-1.0F, 1.0F);
    net->blob("data")->set_values(*backend, images);
    net->blob("label")->set_values(*backend, std::vector<float>{0.0F, 2.0F});
    net->clear_gradients();
    REQUIRE(net->forward().has_value());
    net->backward();
    std::vector<float>& values = gradients.emplace_back();
    values.resize(static_cast<std::size_t>(net->gradients().size()));
    backend->device().download(values, net->gradients().data());
    bytes.push_back(net->memory().blob_bytes);
  }
  CHECK(bytes[0] > bytes[1]);
  for (std::size_t i = 0; i < gradients[0].size(); ++i) {
    REQUIRE(gradients[0][i] == Approx(gradients[1][i]).margin(1e-4));
  }
}

TEST_CASE("outputs, inputs and blobs asked for stay", "[memory]") {
  const auto backend = make_reference_backend(LayoutKind::kBlocked8);
  NetOptions options;
  options.keep_blobs = true;
  const NetRun kept = run_net(branched_net(), *backend, options);
  options.keep_blobs = false;
  options.backend = backend.get();
  options.kept_blobs = {"a", "cat"};
  options.seed = test::varied(5);  // as run_net() seeds it
  const auto net = make_net(branched_net(), options);
  std::map<std::string, std::vector<float>> inputs;
  for (const std::string name : {"data", "label"}) {
    inputs[name] = kept.values.at(name);
    net->blob(name)->set_values(*backend, inputs[name]);
  }
  net->set_batch_span({1});  // the second pass of `kept`
  REQUIRE(net->forward().has_value());
  net->backward();
  for (const std::string name : {"data", "label", "loss", "probability", "accuracy"}) {
    CHECK(net->blob(name)->values(*backend) == kept.values.at(name));
  }
  CHECK(net->blob("a")->values(*backend) == kept.values.at("a"));
  CHECK(net->blob("cat")->gradients(*backend) == kept.gradients.at("cat"));
}

// Frozen statistics under a scale that is trained, as nets are fine-tuned.
std::string fine_tuned_net() {
  return kEvenLabels + kEvenImages + conv("a", "data", 8) +
         "layer { name: 'bn' type: 'BatchNorm' bottom: 'a' top: 'a' "
         "batch_norm_param { use_global_stats: true } }\n"
         "layer { name: 's' type: 'Scale' bottom: 'a' top: 'a' }\n" +
         product("score", "a") + layer("loss", "SoftmaxWithLoss", {"score", "label"});
}

TEST_CASE("a plan takes no memory and tells how much it would be", "[memory]") {
  int allocations = 0;
  const auto backend = make_reference_backend(LayoutKind::kBlocked16, &allocations);
  NetOptions options;
  options.backend = backend.get();
  options.plan_only = true;
  CHECK(make_net(fine_tuned_net(), options)->memory().blob_bytes > 0);
  const auto planned = make_net(branched_net(), options);
  NetOptions test_options = options;
  test_options.phase = Phase::kTest;
  test_options.trains = false;
  test_options.share_parameters = planned.get();
  const auto planned_test = make_net(branched_net(), test_options);
  CHECK(allocations == 0);
  CHECK(planned->blob("a")->shape() == Shape{2, 8, 8, 8});
  CHECK_FALSE(planned->blob("a")->has_data());

  options.plan_only = test_options.plan_only = false;
  const auto net = make_net(branched_net(), options);
  test_options.share_parameters = net.get();
  const auto test = make_net(branched_net(), test_options);
  for (const auto& [a, b] : {std::pair(planned->memory(), net->memory()),
                             std::pair(planned_test->memory(), test->memory())}) {
    CHECK(a.blob_bytes == b.blob_bytes);
    CHECK(a.unshared_bytes == b.unshared_bytes);
    CHECK(a.workspace_bytes == b.workspace_bytes);
    CHECK(a.parameter_bytes == b.parameter_bytes);
  }
  CHECK(net->memory().parameter_bytes == net->layout().element_count() * 4);
  CHECK(test->memory().parameter_bytes == 0);
}

TEST_CASE("an iteration takes no memory from its backend", "[memory]") {
  int allocations = 0;
  const auto backend = make_reference_backend(LayoutKind::kBlocked8, &allocations);
  NetOptions options;
  options.backend = backend.get();
  const auto net = make_net(branched_net(), options);
  REQUIRE(net->forward().has_value());
  net->backward();
  const int before = allocations;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(net->forward().has_value());
    net->backward();
  }
  CHECK(allocations == before);
}

}  // namespace
}  // namespace speedo
