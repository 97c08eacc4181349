// Nets compute the same in every layout, and few blobs are reordered. (The reference backend takes
// all layouts, and a convolution there may read plain values.)

#include <speedo/backend/backend.hpp>

#include "core/layers/reorder.hpp"
#include "net_run.hpp"
#include "net_support.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

const std::string kOddImages = input("data", "dim: 2 dim: 3 dim: 7 dim: 6");
const std::string kOddLabels = input("label", "dim: 2");

std::string loss_of(const std::string& bottom) {
  return product("score", bottom) + layer("loss", "SoftmaxWithLoss", {"score", "label"});
}

std::vector<int> compare_layouts(const std::string& text, bool may_fuse = true) {
  NetOptions options;
  options.keep_blobs = true;
  options.may_fuse = may_fuse;
  return check_in_all_layouts(text, options);
}

TEST_CASE("a chain is reordered once, where its classifier begins", "[layout]") {
  const std::string pool =
      layer("p", "Pooling", {"a"}, "pooling_param { kernel_size: 3 stride: 2 }");
  const std::string text = kOddLabels + kOddImages + conv("a", "data", 7) + in_place("ReLU", "a") +
                           pool + layer("n", "LRN", {"p"}, "lrn_param { local_size: 3 }") +
                           conv("b", "n", 20, 1) + in_place("ReLU", "b") + loss_of("b");
  CHECK(compare_layouts(text) == std::vector<int>{1, 1, 1});
  CHECK(compare_layouts(text, false) == std::vector<int>{1, 1, 1});
}

TEST_CASE("branches stay in the net's layout", "[layout]") {
  const auto text = [](int first, int second) {
    return kOddLabels + kOddImages + conv("a", "data", 16) + in_place("ReLU", "a") +
           conv("b", "a", first) + conv("c", "a", second) + conv("d", "a", 5, 1) +
           layer("all", "Concat", {"b", "c", "d"}) + in_place("ReLU", "all") +
           conv("e", "all", first + second + 5, 1) + layer("sum", "Eltwise", {"e", "all"}) +
           layer("p", "Pooling", {"sum"}, "pooling_param { pool: AVE kernel_size: 2 stride: 2 }") +
           loss_of("p");
  };
  CHECK(compare_layouts(text(16, 32)) == std::vector<int>{1, 1, 1});
  // Blocks of 16 would be cut behind 24 channels, so the joined blob is plain: three blobs are
  // reordered before it, and its one reader that needs the net's layout reads it plain.
  const auto cut = compare_layouts(text(24, 8));
  CHECK(cut[0] == 1);
  CHECK(cut[1] > 1);
  CHECK(cut[2] == 1);
  CHECK(compare_layouts(text(7, 11)).back() == 1);
}

TEST_CASE("slices keep a layout that they do not cut", "[layout]") {
  const auto text = [](int point) {
    const std::string cut =
        "layer { name: 's' type: 'Slice' bottom: 'a' top: 's0' top: 's1' "
        "slice_param { slice_point: " +
        std::to_string(point) + " } }\n";
    return kOddLabels + kOddImages + conv("a", "data", 37) + cut + conv("b", "s0", 6) +
           conv("c", "s1", 6) + layer("sum", "Eltwise", {"b", "c"}) + loss_of("sum");
  };
  CHECK(compare_layouts(text(16)) == std::vector<int>{1, 1, 1});
  CHECK(compare_layouts(text(8))[0] == 1);
  compare_layouts(text(9));
}

TEST_CASE("a blob with several plain readers is reordered once", "[layout]") {
  const std::string readers = product("x", "a") + product("y", "a") + conv("c", "a", 6) +
                              conv("d", "a", 6) + product("z", "c") + product("u", "d");
  const std::string text = kOddLabels + kOddImages + conv("a", "data", 9) + in_place("ReLU", "a") +
                           readers + layer("sum", "Eltwise", {"x", "y", "z", "u"}) +
                           layer("loss", "SoftmaxWithLoss", {"sum", "label"});
  CHECK(compare_layouts(text) == std::vector<int>{3, 3, 3});
}

TEST_CASE("a layout of the same bytes costs nothing", "[layout]") {
  const std::string text = kOddLabels + kOddImages + conv("a", "data", 16) +
                           layer("p", "Pooling", {"a"}, "pooling_param { global_pooling: true }") +
                           layer("d", "Dropout", {"p"}) + loss_of("d");
  CHECK(compare_layouts(text) == std::vector<int>{1, 1, 1});
  const auto backend = make_reference_backend(LayoutKind::kBlocked16);
  NetOptions options;
  options.backend = backend.get();
  const auto net = make_net(text, options);
  for (const Net::LayerView& view : net->layers()) {
    if (!view.is_reorder) continue;
    CHECK(view.bottoms[0]->data() == view.tops[0]->data());
    CHECK(view.layer->type() == "Reorder");
    CHECK(view.layer->name() == view.bottom_names[0] + "_reorder");
    CHECK(net->blob(view.top_names[0]) == nullptr);
  }
  CHECK(same_order({4, 16, 1}, {16}, {8}));
  CHECK_FALSE(same_order({4, 17, 1}, {16}, {}));
  CHECK_FALSE(same_order({4, 16, 2}, {16}, {}));
}

TEST_CASE("layers that want plain blobs in place, or in a loss, get them", "[layout]") {
  compare_layouts(kOddLabels + kOddImages + conv("a", "data", 9) + in_place("Softmax", "a") +
                  conv("b", "a", 9) + in_place("Softmax", "b") + loss_of("b"));
  const std::string weighted =
      "layer { name: 'a' type: 'Convolution' bottom: 'data' top: 'a' loss_weight: 0.5 "
      "convolution_param { num_output: 9 kernel_size: 3 weight_filler { type: 'msra' } } }\n";
  compare_layouts(kOddLabels + kOddImages + weighted + conv("b", "a", 5) + loss_of("b"));
  const std::string weighted_relu =
      "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'a' loss_weight: 0.5 }\n";
  compare_layouts(kOddImages + conv("a", "data", 9) + weighted_relu);
}

TEST_CASE("layers that share memory do so with the bottom that they read", "[layout]") {
  compare_layouts(kOddLabels + kOddImages + conv("a", "data", 9) + layer("f", "Flatten", {"a"}) +
                  loss_of("f"));
  compare_layouts(kOddLabels + kOddImages + conv("a", "data", 9) + layer("c", "Concat", {"a"}) +
                  layer("r", "Reshape", {"c"}, "reshape_param { shape { dim: 0 dim: -1 } }") +
                  loss_of("r"));
}

TEST_CASE("normalized nets compute the same in all layouts", "[layout]") {
  const std::string scale =
      "layer { name: 'a/s' type: 'Scale' bottom: 'a' top: 'a' scale_param { bias_term: true } }\n";
  compare_layouts(kOddLabels + kOddImages + conv("a", "data", 9) + in_place("BatchNorm", "a") +
                  scale + in_place("ReLU", "a") + conv("b", "a", 9) + in_place("PReLU", "b") +
                  layer("sum", "Eltwise", {"a", "b"}) + in_place("ReLU", "sum") + loss_of("sum"));
}

TEST_CASE("a net is planned again after its input was reshaped", "[layout]") {
  const std::string text = kOddImages + conv("a", "data", 9) + in_place("ReLU", "a") +
                           layer("p", "Pooling", {"a"}, "pooling_param { global_pooling: true }") +
                           layer("f", "Flatten", {"p"});
  const auto backend = make_reference_backend(LayoutKind::kBlocked16);
  NetOptions options;
  options.backend = backend.get();
  const auto net = make_net(text, options);
  const std::size_t layers = net->layers().size();
  for (const std::int64_t size : {9, 4, 20}) {
    net->blob("data")->reshape({3, 3, size, size});
    REQUIRE(net->reshape().has_value());
    CHECK(net->layers().size() == layers);
    net->blob("data")->set_values(*backend,
                                  std::vector<float>(static_cast<std::size_t>(9 * size * size), 1));
    REQUIRE(net->forward().has_value());
    const auto values = net->blob("f")->values(*backend);
    CHECK(values.size() == 27);
    CHECK(std::equal(values.begin(), values.begin() + 9, values.begin() + 9));
  }
}

}  // namespace
}  // namespace speedo
