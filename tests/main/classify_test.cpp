// Images classified by a deploy net, beside the arithmetic.

#include <array>
#include <cmath>
#include <cstdio>

#include "caffe.pb.h"
#include "main/command_support.hpp"

namespace speedo::test {
namespace {

constexpr const char* kDeployNet = R"(name: "deploy"
  layer { name: "data" type: "Input" top: "data"
          input_param { shape { dim: 5 dim: 3 dim: 2 dim: 2 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 3 } }
  layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" })";

// The weights of blue, green and red for each class, the same for each pixel.
constexpr std::array<std::array<float, 3>, 3> kChannelWeights = {
    {{0.01F, 0.0F, -0.01F}, {0.0F, 0.01F, 0.0F}, {-0.01F, 0.0F, 0.02F}}};

void write_model(const Context& place) {
  caffe::NetParameter net;
  caffe::LayerParameter& layer = *net.add_layer();
  layer.set_name("ip");
  layer.set_type("InnerProduct");
  caffe::BlobProto& weights = *layer.add_blobs();
  weights.mutable_shape()->add_dim(3);
  weights.mutable_shape()->add_dim(12);
  for (const auto& of_class : kChannelWeights) {
    for (const float of_channel : of_class) {
      for (int pixel = 0; pixel < 4; ++pixel) weights.add_data(of_channel);
    }
  }
  caffe::BlobProto& bias = *layer.add_blobs();
  bias.mutable_shape()->add_dim(3);
  for (int i = 0; i < 3; ++i) bias.add_data(0.0F);
  place.write("net.caffemodel", net.SerializeAsString());
}

// One colour in every pixel.
std::string picture(int red, int green, int blue, int side) {
  std::string file = "P6 " + std::to_string(side) + " " + std::to_string(side) + " 255\n";
  for (int i = 0; i < side * side; ++i) {
    for (const int value : {red, green, blue}) file += static_cast<char>(value);
  }
  return file;
}

// As the program prints them, by class. `pixel`: blue, green, red, without the mean.
std::array<std::string, 3> expected(const std::array<double, 3>& pixel) {
  std::array<double, 3> powers{};
  double sum = 0.0;
  for (std::size_t k = 0; k < 3; ++k) {
    double score = 0.0;
    for (std::size_t c = 0; c < 3; ++c) {
      score += 4.0 * pixel[c] * static_cast<double>(kChannelWeights[k][c]);
    }
    sum += powers[k] = std::exp(score);
  }
  std::array<std::string, 3> printed;
  for (std::size_t k = 0; k < 3; ++k) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.4f", powers[k] / sum);
    printed[k] = text;
  }
  return printed;
}

struct Pictures {
  Pictures() {
    place.write("deploy.prototxt", kDeployNet);
    write_model(place);
    place.write("words.txt", "n01 blue thing\nn02 green thing\nn03 red thing\n");
    place.write("red.ppm", picture(80, 30, 10, 2));
    place.write("large green.ppm", picture(20, 90, 40, 7));
    place.write("gray.pgm", "P5 2 2 255\n" + std::string(4, 'd'));
  }
  Outcome classify(const std::string& mean, std::vector<std::string> rest) {
    std::vector<std::string> line = {"speedo",
                                     "classify",
                                     place.file("deploy.prototxt"),
                                     place.file("net.caffemodel"),
                                     mean,
                                     place.file("words.txt")};
    line.insert(line.end(), rest.begin(), rest.end());
    return place.run(line);
  }

  Context place;
};

TEST_CASE("classify prints the best classes as Caffe's classification does") {
  Pictures pictures;
  const Context& place = pictures.place;
  const Outcome two =
      pictures.classify("10,20,30", {place.file("red.ppm"), place.file("large green.ppm")});
  INFO(two.errors);
  REQUIRE(two.exit_code == 0);
  const auto red = expected({10.0 - 10, 30.0 - 20, 80.0 - 30});
  const auto green = expected({40.0 - 10, 90.0 - 20, 20.0 - 30});
  CHECK(two.output == "---------- Prediction for " + place.file("red.ppm") + " ----------\n" +  //
                          red[2] + " - \"n03 red thing\"\n" + red[1] + " - \"n02 green thing\"\n" +
                          red[0] + " - \"n01 blue thing\"\n" +  //
                          "---------- Prediction for " + place.file("large green.ppm") +
                          " ----------\n" + green[1] + " - \"n02 green thing\"\n" + green[0] +
                          " - \"n01 blue thing\"\n" + green[2] + " - \"n03 red thing\"\n");

  // A gray image becomes one with three channels; one mean serves them all; then the scale.
  const Outcome gray =
      pictures.classify("50", {place.file("gray.pgm"), "--top", "1", "--scale=0.5", "--json"});
  INFO(gray.errors);
  REQUIRE(gray.exit_code == 0);
  const auto scaled = expected({25.0, 25.0, 25.0});
  const auto answers = gray.json()["images"][0]["answers"];
  REQUIRE(answers.size() == 1);
  CHECK(answers[0]["label"] == "n02 green thing");
  CHECK(answers[0]["score"].get<double>() == Approx(std::stod(scaled[1])).margin(1e-4));
}

TEST_CASE("classify subtracts each channel's mean of a mean file") {
  Pictures pictures;
  const Context& place = pictures.place;
  caffe::BlobProto mean;  // of two rows: 10 and 30, 20 and 20, 0 and 60
  mean.set_num(1);
  mean.set_channels(3);
  mean.set_height(2);
  mean.set_width(1);
  for (const float value : {10.0F, 30.0F, 20.0F, 20.0F, 0.0F, 60.0F}) mean.add_data(value);
  place.write("mean.binaryproto", mean.SerializeAsString());
  const Outcome by_file =
      pictures.classify(place.file("mean.binaryproto"), {place.file("red.ppm")});
  INFO(by_file.errors);
  REQUIRE(by_file.exit_code == 0);
  CHECK(by_file.output == pictures.classify("20,20,30", {place.file("red.ppm")}).output);
  CHECK(by_file.output != pictures.classify("none", {place.file("red.ppm")}).output);
}

TEST_CASE("classify leaves out images that cannot be read, where it is told to") {
  Pictures pictures;
  const Context& place = pictures.place;
  place.write("broken.ppm", "P6 2 2 255\nxx");
  const std::string red = place.file("red.ppm");
  const std::vector<std::string> bad = {place.file("broken.ppm"), place.file("missing.ppm")};
  const Outcome some = pictures.classify("none", {bad[0], red, bad[1], "--on-bad-record", "skip"});
  INFO(some.errors);
  REQUIRE(some.exit_code == 0);
  CHECK(some.output == pictures.classify("none", {red}).output);
  CHECK(some.errors.find("broken.ppm") != std::string::npos);
  CHECK(some.errors.find("missing.ppm") != std::string::npos);
  CHECK(some.errors.find("Left out 2 images") != std::string::npos);
  const Outcome none = pictures.classify("none", {bad[0], bad[1], "--on-bad-record=skip"});
  CHECK(none.exit_code == 65);
  CHECK(none.output.empty());
  CHECK(none.error_line().find("no image could be read") != std::string::npos);
}

TEST_CASE("classify names what is bad") {
  Pictures pictures;
  const Context& place = pictures.place;
  const auto refused = [&](const Outcome& outcome, int code, const std::string& words) {
    INFO(outcome.errors);
    CHECK(outcome.exit_code == code);
    CHECK(outcome.error_line().find(words) != std::string::npos);
  };
  const std::string red = place.file("red.ppm");
  caffe::BlobProto infinite;
  infinite.mutable_shape()->add_dim(3);
  infinite.mutable_shape()->add_dim(1);
  infinite.mutable_shape()->add_dim(1);
  for (const float value : {1.0F, HUGE_VALF, 1.0F}) infinite.add_data(value);
  place.write("infinite.binaryproto", infinite.SerializeAsString());
  refused(pictures.classify(place.file("infinite.binaryproto"), {red}), 65,
          "the mean of channel 1 is not finite");
  place.write("broken.ppm", "P6 2 2 255\nxx");
  refused(pictures.classify("none", {place.file("broken.ppm")}), 65, "broken.ppm");
  refused(pictures.classify("none", {place.file("missing.ppm")}), 65, "missing.ppm");
  refused(pictures.classify("no_mean", {red}), 65, "no_mean");
  refused(pictures.classify("1,2", {red}), 64, "mean has 2 channels");
  refused(pictures.classify("none", {}), 2, "images");
  place.write("words.txt", "one\n");
  refused(pictures.classify("none", {red}), 78, "names 1 classes, but the net has 3");
  place.write("words.txt", "a\nb\nc\n");
  place.write("deploy.prototxt",
              R"(layer { name: "data" type: "Input" top: "data"
                         input_param { shape { dim: 1 dim: 2 dim: 2 dim: 2 } } })");
  refused(pictures.classify("none", {red}), 64, "1 or 3 channels");
  place.write("deploy.prototxt",
              R"(layer { name: "data" type: "DummyData" top: "data"
                         dummy_data_param { shape { dim: 1 dim: 12 } } }
                 layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
                         inner_product_param { num_output: 3 } })");
  refused(pictures.classify("none", {red}), 64, "deploy net");
}

}  // namespace
}  // namespace speedo::test
