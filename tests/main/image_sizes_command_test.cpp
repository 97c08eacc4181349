// A fully convolutional net on images of several sizes and masks of theirs, as Caffe's users have
// it: by commands alone.

#include <cstdint>
#include <string>

#include <speedo/base/random.hpp>

#include "main/command_support.hpp"

namespace speedo::test {
namespace {

constexpr int kImages = 12;

// Image i holds a bright square, and mask i says which pixels are the square's.
void write_images(const Context& place) {
  Random random(7);
  std::string images, masks;
  for (int i = 0; i < kImages; ++i) {
    const std::uint64_t height = 20 + random.below(30), width = 20 + random.below(30);
    const std::uint64_t top = random.below(height - 12), left = random.below(width - 12);
    std::string pixels, mask;
    for (std::uint64_t y = 0; y < height; ++y) {
      for (std::uint64_t x = 0; x < width; ++x) {
        const bool in_square = y - top < 12 && x - left < 12;  // unsigned: below is far above
        pixels += static_cast<char>((in_square ? 160 : 40) + random.below(50));
        mask += static_cast<char>(in_square ? 1 : 0);
      }
    }
    const std::string head =
        "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
    const std::string name = std::to_string(i) + ".pgm";
    images += place.write("image" + name, head + pixels) + " 0\n";
    masks += place.write("mask" + name, head + mask) + " 0\n";
  }
  place.write("images.txt", images);
  place.write("masks.txt", masks);
}

std::string list_layer(const Context& place, const std::string& name, const std::string& list) {
  return "layer { name: '" + name + "' type: 'ImageData' top: '" + name + "' top: '" + name +
         "_label' image_data_param { source: '" + place.file(list) +
         "' batch_size: 1 is_color: false }";
}

std::string write_net(const Context& place) {
  return place.write("net.prototxt", list_layer(place, "data", "images.txt") +
                                         " transform_param { scale: 0.01 mean_value: 100 } }\n" +
                                         list_layer(place, "mask", "masks.txt") + " }\n" + R"(
    layer { name: "quiet" type: "Silence" bottom: "data_label" bottom: "mask_label" }
    layer { name: "c1" type: "Convolution" bottom: "data" top: "c1"
            convolution_param { num_output: 8 kernel_size: 3 pad: 6
                                weight_filler { type: "xavier" } } }
    layer { name: "relu" type: "ReLU" bottom: "c1" top: "c1" }
    layer { name: "pool" type: "Pooling" bottom: "c1" top: "pool"
            pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "score" type: "Convolution" bottom: "pool" top: "score"
            convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: "xavier" } } }
    layer { name: "up" type: "Deconvolution" bottom: "score" top: "up" param { lr_mult: 0 }
            convolution_param { num_output: 2 group: 2 kernel_size: 4 stride: 2 bias_term: false
                                weight_filler { type: "bilinear" } } }
    layer { name: "cut" type: "Crop" bottom: "up" bottom: "data" top: "cut"
            crop_param { axis: 2 offset: 6 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "cut" bottom: "mask" top: "loss" }
    layer { name: "accuracy" type: "Accuracy" bottom: "cut" bottom: "mask" top: "accuracy" }
  )");
}

std::string write_solver(const Context& place) {
  return place.write("solver.prototxt", "net: \"" + write_net(place) + R"("
    base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 random_seed: 3 max_iter: 60 iter_size: 2
    test_iter: 12 test_interval: 60 snapshot_prefix: ")" + place.file("snap") + "\"\n");
}

}  // namespace

TEST_CASE("a net is trained, tested, timed and read out on images of several sizes") {
  Context place;
  write_images(place);
  const std::string solver = write_solver(place), net = place.file("net.prototxt"),
                    model = place.file("snap_iter_60.caffemodel");
  const Outcome trained = place.run({"speedo", "train", "--solver", solver, "--json"});
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  const double accuracy = trained.json()["accuracy"];
  CHECK(accuracy > 0.95);
  CHECK(trained.errors.find("dropped") == std::string::npos);
  const Outcome tested = place.run({"speedo", "test", "--model", net, "--weights", model,
                                    "--iterations", std::to_string(kImages), "--json"});
  REQUIRE(tested.exit_code == 0);
  CHECK(tested.json()["accuracy"].get<double>() == Approx(accuracy).margin(1e-6));
  const Outcome features = place.run({"speedo", "extract_features", model, net, "cut",
                                      place.file("features"), std::to_string(kImages), "lmdb"});
  INFO(features.errors);
  CHECK(features.exit_code == 0);
  CHECK(place.run({"speedo", "time", "--model", net, "--iterations", "12"}).exit_code == 0);
}

TEST_CASE("two workers train on images of several sizes") {
  Context place;
  write_images(place);
  const Outcome trained = place.run({"speedo", "run", "--solver", write_solver(place), "--workers",
                                     "2", "--sync", "--json"});
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  CHECK(trained.json()["accuracy"].get<double>() > 0.95);
}

TEST_CASE("larger batches of several sizes are refused, with what to do") {
  Context place;
  write_images(place);
  write_net(place);
  std::string text = place.read("net.prototxt");
  for (std::size_t at; (at = text.find("batch_size: 1 ")) != std::string::npos;) {
    text.replace(at, 14, "batch_size: 3 ");
  }
  const Outcome timed =
      place.run({"speedo", "time", "--model", place.write("three.prototxt", text)});
  CHECK(timed.exit_code != 0);
  CHECK(timed.error_line().find("(batch_size: 1)") != std::string::npos);
}

}  // namespace speedo::test
