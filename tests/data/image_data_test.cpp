// ImageData and WindowData layers, on images that the tests write.

#include <cmath>

#include "data/feed_factory.hpp"
#include "data/image/image_list.hpp"
#include "data/image/resize.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

// A gray image whose pixels are first, first + 1, ...
std::string pgm(int height, int width, int first) {
  std::string file = "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
  for (int i = 0; i < height * width; ++i) file += static_cast<char>(first + i);
  return file;
}

// Images 0.pgm, 1.pgm, ... of 4 x 4 pixels and their list, labels counted by ten.
void write_images(const TempDir& folder, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    const std::string name = "image " + std::to_string(i) + ".pgm";
    write_bytes(folder / name, pgm(4, 4, 16 * i));
    list += name + " " + std::to_string(10 * i) + "\n";
  }
  write_bytes(folder / "list.txt", list);
}

auto open_feed(const TempDir& folder, const std::string& fields, const std::string& more = "",
               OnBadRecord on_bad_record = OnBadRecord::kAbort, Phase phase = Phase::kTest) {
  return make_feed_factory(2, on_bad_record)
      ->open(layer_from("name: 'data' type: 'ImageData' image_data_param { is_color: false "
                        "source: 'list.txt' " +
                        fields + " } " + more),
             {.phase = phase, .seed = 5, .base = folder.path(), .top_count = 2});
}

std::vector<float> labels_of(BatchFeed& feed, std::uint64_t batches) {
  std::vector<float> labels;
  for (std::uint64_t b = 0; b < batches; ++b) {
    const auto tops = feed.read(b);
    REQUIRE(tops);
    labels.insert(labels.end(), (*tops)[1].begin(), (*tops)[1].end());
  }
  return labels;
}

TEST_CASE("ImageData reads a list in order, names with blanks too, and begins again") {
  const TempDir folder;
  write_images(folder, 3);
  const auto feed = open_feed(folder, "batch_size: 2");
  REQUIRE(feed);
  CHECK((*feed)->shapes() == std::vector<Shape>{Shape{2, 1, 4, 4}, Shape{2}});
  CHECK(labels_of(**feed, 3) == std::vector<float>{0, 10, 20, 0, 10, 20});
  const auto tops = (*feed)->read(0);
  REQUIRE(tops);
  CHECK((*tops)[0][16] == 16.0F);
  CHECK((*tops)[0][31] == 31.0F);
  const auto cropped =
      open_feed(folder, "batch_size: 1", "transform_param { crop_size: 2 scale: 2 }");
  REQUIRE(cropped);
  CHECK((*(*cropped)->read(0))[0][0] == 10.0F);
}

TEST_CASE("ImageData: a byte order mark before a list is no part of the first name") {
  const TempDir folder;
  write_images(folder, 3);
  write_bytes(folder / "list.txt", "\xEF\xBB\xBF" + read_bytes(folder / "list.txt"));
  const auto feed = open_feed(folder, "batch_size: 3");
  REQUIRE(feed);
  CHECK(labels_of(**feed, 1) == std::vector<float>{0, 10, 20});
}

TEST_CASE("ImageData: color gives three planes, root_folder comes before each name") {
  const TempDir folder;
  write_images(folder, 2);
  std::filesystem::create_directory(folder / "sub");
  write_bytes(folder / "sub" / "a.pgm", pgm(2, 2, 7));
  write_bytes(folder / "list.txt", "a.pgm 3\r\n\n");
  const auto open_below = [&](const std::string& root) {
    return make_feed_factory()->open(
        layer_from("type: 'ImageData' image_data_param { source: 'list.txt' root_folder: '" + root +
                   "' }"),
        {.phase = Phase::kTest, .base = folder.path(), .top_count = 2});
  };
  check_error(open_below((folder / "sub").string()), ErrorCode::kNotFound, "end it with a '/'");
  const auto feed = open_below((folder / "sub").string() + "/");
  REQUIRE(feed);
  CHECK((*feed)->shapes()[0] == Shape{1, 3, 2, 2});
  CHECK((*(*feed)->read(0))[0][8] == 7.0F);
  CHECK(labels_of(**feed, 1) == std::vector<float>{3});
}

TEST_CASE("ImageData: shuffled, each epoch has each record once, and the same again") {
  const TempDir folder;
  write_images(folder, 8);
  const auto feed = open_feed(folder, "batch_size: 4 shuffle: true");
  REQUIRE(feed);
  const std::vector<float> first = labels_of(**feed, 2);
  std::vector<float> second = labels_of(**feed, 4);
  CHECK(std::vector<float>(second.begin(), second.begin() + 8) == first);
  std::vector<float> next(second.begin() + 8, second.end());
  CHECK(next != first);
  std::sort(next.begin(), next.end());
  CHECK(next == std::vector<float>{0, 10, 20, 30, 40, 50, 60, 70});
}

TEST_CASE("ImageData: a label may have a sign, and zeros behind a point") {
  const TempDir folder;
  write_images(folder, 1);
  write_bytes(
      folder / "list.txt",
      "image 0.pgm +1\nimage 0.pgm 2.0\nimage 0.pgm -3\nimage 0.pgm 4.\nimage 0.pgm -5.00\n");
  const auto feed = open_feed(folder, "batch_size: 5");
  REQUIRE(feed);
  CHECK(labels_of(**feed, 1) == std::vector<float>{1, 2, -3, 4, -5});
}

TEST_CASE("ImageData: what cannot be read is named, with the list's line") {
  const TempDir folder;
  check_error(open_feed(folder, ""), ErrorCode::kNotFound, "list.txt");
  write_bytes(folder / "list.txt", "\n  \n");
  check_error(open_feed(folder, ""), ErrorCode::kData, "names no image");
  write_bytes(folder / "list.txt", "\nnone.pgm 1\n");
  check_error(open_feed(folder, ""), ErrorCode::kNotFound, "line 2: ");
  write_bytes(folder / "list.txt", "none.pgm cat\n");
  check_error(open_feed(folder, ""), ErrorCode::kData, "line 1 has the label 'cat'");
  for (const std::string bad : {"1.5", "+-1", "--1", "1e2", ".", "+", "1.0.0", "99999999999"}) {
    write_bytes(folder / "list.txt", "none.pgm " + bad + "\n");
    check_error(open_feed(folder, ""), ErrorCode::kData, "has the label '" + bad + "'");
  }
  write_bytes(folder / "bad.png", "\x89PNG and no more");
  write_bytes(folder / "list.txt", "bad.png 1\n");
  check_error(open_feed(folder, ""), ErrorCode::kData, "'bad.png' holds an encoded image that");
  write_images(folder, 2);
  check_error(open_feed(folder, "new_height: 3"), ErrorCode::kConfig, "belong together");
  check_error(open_feed(folder, "new_height: 300000 new_width: 300000"), ErrorCode::kConfig,
              "too many");
  write_bytes(folder / "image 1.pgm", pgm(5, 5, 1));
  const auto feed = open_feed(folder, "batch_size: 2");
  REQUIRE(feed);
  check_error((*feed)->read(0), ErrorCode::kData, "record 1 is 1x5x5, but record 0 is 1x4x4");
  CHECK(open_feed(folder, "batch_size: 2 new_height: 3 new_width: 3").value()->read(0));
}

TEST_CASE("bad records are skipped if asked for, the next one in their place, and counted") {
  const TempDir folder;
  write_images(folder, 5);
  write_bytes(folder / "image 0.pgm", "P5 4 4");
  std::filesystem::remove(folder / "image 3.pgm");
  check_error(open_feed(folder, "batch_size: 5"), ErrorCode::kData, "image 0.pgm");
  const auto factory = make_feed_factory(2, OnBadRecord::kSkip);
  const auto feed = factory->open(
      layer_from("type: 'ImageData' image_data_param { is_color: false source: 'list.txt' "
                 "batch_size: 5 }"),
      {.base = folder.path(), .top_count = 2});
  REQUIRE(feed);
  CHECK(labels_of(**feed, 2) == std::vector<float>{10, 10, 20, 40, 40, 10, 10, 20, 40, 40});
  CHECK(factory->totals().skipped_records == 2);
  for (int i = 0; i < 5; ++i) {
    std::filesystem::remove(folder / ("image " + std::to_string(i) + ".pgm"));
  }
  check_error(open_feed(folder, "", "", OnBadRecord::kSkip), ErrorCode::kNotFound, "line 5");
}

TEST_CASE("a straight ramp stays one when it is stretched") {
  Record record;
  record.channels = 1;
  record.height = 2;
  record.width = 5;
  record.bytes = {0, 40, 80, 120, 160, 100, 140, 180, 220, 255};
  Record wide = record;
  resize_image(wide, 2, 10);
  CHECK(wide.width == 10);
  for (int x = 0; x < 10; ++x) {
    const double at = std::clamp(20.0 * x - 10.0, 0.0, 160.0);
    CHECK(std::abs(wide.bytes[static_cast<std::size_t>(x)] - at) <= 1);
  }
  resize_image(record, 1, 5);
  for (std::size_t x = 0; x < 4; ++x) CHECK(std::abs(record.bytes[x] - (40 * int(x) + 50)) <= 1);
}

// The values are OpenCV 4.6's.
TEST_CASE("beyond the outer rows' middles both rows' weights stay, rounded each, as in OpenCV") {
  Record record;
  record.channels = 1;
  record.height = 2;
  record.width = 3;
  record.bytes = {255, 228, 34, 121, 243, 189};
  resize_image(record, 4, 5);
  CHECK(record.bytes == std::vector<std::uint8_t>{255, 244, 228, 111, 34,   //
                                                  222, 225, 232, 136, 73,   //
                                                  155, 188, 239, 186, 150,  //
                                                  121, 170, 243, 210, 189});
}

std::string window_layer(const std::string& fields, const std::string& transform) {
  return "name: 'w' type: 'WindowData' window_data_param { source: 'w.txt' " + fields +
         " } transform_param { " + transform + " }";
}

auto open_windows(const TempDir& folder, const std::string& fields,
                  const std::string& transform = "crop_size: 4") {
  return make_feed_factory(2)->open(layer_from(window_layer(fields, transform)),
                                    {.seed = 9, .base = folder.path(), .top_count = 2});
}

// One gray image of 8 x 8, with a window of class 3, one of background and one between.
void write_windows(const TempDir& folder) {
  write_bytes(folder / "a.pgm", pgm(8, 8, 0));
  write_bytes(folder / "w.txt",
              "# 0\na.pgm\n1 8 8\n3\n3 0.9 2 1 5 4\n3 0.1 0 4 3 7\n3 0.4 0 0 7 7\n");
}

TEST_CASE("WindowData: background first, then foreground, cut out and stretched") {
  const TempDir folder;
  write_windows(folder);
  const auto feed =
      open_windows(folder, "batch_size: 4 fg_fraction: 0.5 bg_threshold: 0.3 cache_images: true");
  REQUIRE(feed);
  CHECK((*feed)->shapes() == std::vector<Shape>{Shape{4, 1, 4, 4}, Shape{4}});
  const auto tops = (*feed)->read(0);
  REQUIRE(tops);
  CHECK(std::vector<float>((*tops)[1].begin(), (*tops)[1].end()) == std::vector<float>{0, 0, 3, 3});
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 0; x < 4; ++x) {
      CHECK((*tops)[0][4 * y + x] == static_cast<float>(8 * (y + 4) + x));
      CHECK((*tops)[0][32 + 4 * y + x] == static_cast<float>(8 * (y + 1) + x + 2));
    }
  }
}

TEST_CASE("WindowData: values are multiplied by its own scale, not by that of the transformation") {
  const TempDir folder;
  write_windows(folder);
  const auto feed = open_windows(folder, "batch_size: 1 fg_fraction: 1 scale: 0.5",
                                 "crop_size: 4 scale: 3");
  REQUIRE(feed);
  const auto tops = (*feed)->read(0);
  REQUIRE(tops);
  CHECK((*tops)[0][0] == 0.5F * (8 * 1 + 2));
}

TEST_CASE("WindowData: a byte order mark before the file is no part of it") {
  const TempDir folder;
  write_windows(folder);
  write_bytes(folder / "w.txt", "\xEF\xBB\xBF" + read_bytes(folder / "w.txt"));
  CHECK(open_windows(folder, "batch_size: 2"));
}

TEST_CASE("WindowData: context around a window is taken, and free where the image ends") {
  const TempDir folder;
  write_windows(folder);
  // Of 8 pixels 2 on each side are context: the window of 4 x 4 is drawn from 8 x 8 pixels, of
  // which one row lies above the image (the window begins at row 1, its context at -1).
  const auto feed = open_windows(folder, "batch_size: 1 fg_fraction: 1 context_pad: 2",
                                 "crop_size: 8 mean_value: 1");
  REQUIRE(feed);
  const auto tops = (*feed)->read(0);
  REQUIRE(tops);
  const auto at = [&](std::size_t y, std::size_t x) { return (*tops)[0][8 * y + x]; };
  for (std::size_t x = 0; x < 8; ++x) CHECK(at(0, x) == 0.0F);
  CHECK(at(1, 0) == Approx(-1.0F).margin(1.0F));
  CHECK(at(7, 3) > 40.0F);
}

TEST_CASE("WindowData: bad fields and files are named errors") {
  const TempDir folder;
  check_error(open_windows(folder, ""), ErrorCode::kConfig, "batch_size");
  check_error(open_windows(folder, "batch_size: 1", ""), ErrorCode::kConfig, "crop_size");
  check_error(open_windows(folder, "batch_size: 1"), ErrorCode::kNotFound, "w.txt");
  write_windows(folder);
  check_error(open_windows(folder, "batch_size: 1 crop_mode: 'round'"), ErrorCode::kConfig,
              "crop_mode is 'round'");
  check_error(open_windows(folder, "batch_size: 1 context_pad: 2"), ErrorCode::kConfig,
              "context_pad 2 leaves nothing");
  check_error(open_windows(folder, "batch_size: 4 fg_threshold: 0.95"), ErrorCode::kData,
              "no foreground windows");
  for (const char* text : {"", "x", "# 0 a.pgm 1 8", "# 0 a.pgm 1 8 8 1 3 high 0 0 1 1",
                           "# 0 a.pgm 1 8 8 1 0 0.9 0 0 1 1", "# 0 a.pgm 1 8 8 99999999999 3"}) {
    write_bytes(folder / "w.txt", text);
    check_error(open_windows(folder, "batch_size: 1"), ErrorCode::kData, "w.txt");
  }
  write_bytes(folder / "w.txt", "# 0 a.pgm 1 8 8 1 3 0.9 6 6 9 9\n");
  const auto feed = open_windows(folder, "batch_size: 1 fg_fraction: 1");
  REQUIRE(feed);
  check_error((*feed)->read(0), ErrorCode::kData, "does not lie in 'a.pgm'");
}

}  // namespace
}  // namespace speedo
