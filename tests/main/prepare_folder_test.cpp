// examples/imagenet/prepare_folder.sh: a folder of images for each class becomes two databases.

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "data/open_source.hpp"
#include "main/command_support.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

constexpr int kClasses = 10;

// The script in a copy of its folder, which it writes to, and ten classes named 0 to 9.
struct ClassFolders : Context {
  explicit ClassFolders(int images_of_class) {
    const fs::path examples = fs::path(SPEEDO_SOURCE_DIR) / "examples";
    fs::create_directories(folder() / "examples/imagenet");
    for (const char* script : {"fetch.sh", "imagenet/prepare_folder.sh"}) {
      fs::copy_file(examples / script, folder() / "examples" / script);
    }
    for (int label = 0; label < kClasses; ++label) {
      const std::string name = "images/" + std::to_string(label);
      fs::create_directories(folder() / name);
      for (int image = 0; image < images_of_class; ++image) {
        write(name + "/" + std::to_string(image) + ".ppm", "P6 1 1 255\nrgb");
      }
    }
  }

  std::string made(const std::string& part) const {
    return "examples/imagenet/imagenet_" + part + "_lmdb";
  }
  Outcome prepare(const std::string& programs) {
    return run({file("examples/imagenet/prepare_folder.sh"), file("images")},
               {"SPEEDO_BIN_DIR=" + programs});
  }
  // With a stand-in for convert_imageset, whose databases are the lists that it is given.
  void make_lists() {
    const std::string speedo = write("speedo", "#!/bin/sh\nshift $(($# - 2))\ncp \"$1\" \"$2\"\n");
    fs::permissions(speedo, fs::perms::owner_all);
    const Outcome outcome = prepare(folder().string());
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
  }
  std::vector<int> labels_of_list(const std::string& part) const {
    std::istringstream list(read(made(part)));
    std::vector<int> labels;
    int label = 0;
    for (std::string image; list >> image >> label;) labels.push_back(label);
    return labels;
  }
};

// How many images of each class are among `count` of them.
std::array<int, kClasses> images_by_class(const std::vector<int>& labels, std::size_t first,
                                          std::size_t count) {
  std::array<int, kClasses> images{};
  for (std::size_t i = first; i < first + count; ++i) ++images.at(labels[i]);
  return images;
}

TEST_CASE("The databases of a folder hold all classes in every stretch, in an order that stays") {
  ClassFolders place(200);
  place.make_lists();
  const std::vector<int> train = place.labels_of_list("train"), val = place.labels_of_list("val");
  REQUIRE(train.size() == 1800);
  REQUIRE(val.size() == 200);
  constexpr std::size_t kBatch = 100;
  for (std::size_t first = 0; first < train.size(); first += kBatch) {
    const auto images = images_by_class(train, first, kBatch);
    INFO("images " << first << " to " << first + kBatch - 1);
    CHECK(*std::min_element(images.begin(), images.end()) >= 1);
    CHECK(*std::max_element(images.begin(), images.end()) <= 25);  // of 10 that are expected
  }
  for (const int images : images_by_class(val, 0, val.size())) {
    CHECK(images >= 8);  // of 20
    CHECK(images <= 36);
  }
  const std::string before = place.read(place.made("train"));
  place.make_lists();
  CHECK(place.read(place.made("train")) == before);
}

TEST_CASE("The databases of a folder are images and the places of their classes") {
  ClassFolders place(2);
  const Outcome outcome = place.prepare(fs::path(program("speedo")).parent_path().string());
  INFO(outcome.errors);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.output.find("10 classes") != std::string::npos);
  CHECK(place.read("examples/imagenet/classes.txt") == "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  std::array<int, kClasses> images{};
  for (const auto& [part, count] : {std::pair("train", 18), std::pair("val", 2)}) {
    auto source = open_source(place.file(place.made(part)), {});
    REQUIRE(source);
    REQUIRE((*source)->size() == count);
    for (int i = 0; i < count; ++i) {
      Record record;
      REQUIRE((*source)->read(i, record));
      CHECK(record.height == 256);
      ++images.at(static_cast<std::size_t>(record.label));
    }
  }
  for (const int each : images) CHECK(each == 2);
}

}  // namespace
}  // namespace speedo::test
