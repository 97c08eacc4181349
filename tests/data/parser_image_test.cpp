// Images decoded in processes of their own: the same as here, whatever becomes of the processes.

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include <speedo/base/random.hpp>

#include "data/feed_factory.hpp"
#include "data/image/encoded_image.hpp"
#include "image_support.hpp"
#include "jpeg_support.hpp"
#include "parser_support.hpp"
#include "support/child_processes.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

std::string jpeg_of(unsigned side, int channels, bool progressive = false) {
  std::vector<std::uint8_t> row;
  for (unsigned x = 0; x < side * static_cast<unsigned>(channels); ++x) {
    row.push_back(static_cast<std::uint8_t>(x * 7));
  }
  return make_jpeg(side, channels, row, [&](jpeg_compress_struct& encoder) {
    if (progressive) jpeg_simple_progression(&encoder);
  });
}

// One of each kind of file that a library reads.
std::vector<std::string> all_kinds() {
  const TempDir folder;
  std::vector<std::uint8_t> wide, clear;
  for (const std::uint8_t value : kPixels) wide.insert(wide.end(), {value, 0xAB});
  for (std::size_t i = 0; i < kPixels.size(); i += 3) {
    clear.insert(clear.end(), {kPixels[i], kPixels[i + 1], kPixels[i + 2], 7});
  }
  return {png_file(PNG_COLOR_TYPE_RGB, 8, kPixels, 3),
          png_file(PNG_COLOR_TYPE_RGB, 16, wide, 3),
          png_file(PNG_COLOR_TYPE_RGB_ALPHA, 8, clear, 4),
          png_file(PNG_COLOR_TYPE_GRAY, 8, kPixels, 1),
          jpeg_of(17, 3),
          jpeg_of(16, 1),
          jpeg_of(33, 3, true),
          webp_of(),
          tiff_of(folder, COMPRESSION_NONE),
          tiff_of(folder, COMPRESSION_LZW),
          tiff_of(folder, COMPRESSION_ADOBE_DEFLATE)};
}

std::string text_of(const Record& record) {
  return std::to_string(record.channels) + "x" + std::to_string(record.height) + "x" +
         std::to_string(record.width) + ":" + std::string(record.bytes.begin(), record.bytes.end());
}

// What decoding came to, as one text.
std::string outcome_of(const std::string& file, ImageColor color) {
  Record record;
  const auto decoded = decode_image(std::as_bytes(std::span(file)), color, record);
  return decoded ? text_of(record) : decoded.error().message;
}

std::vector<std::string> outcomes_of(const std::vector<std::string>& files) {
  std::vector<std::string> outcomes;
  for (const std::string& file : files) {
    for (const ImageColor color : {ImageColor::kNative, ImageColor::kColor, ImageColor::kGray}) {
      outcomes.push_back(outcome_of(file, color));
    }
  }
  return outcomes;
}

std::vector<std::string> outcomes_together(const std::vector<std::string>& files,
                                           ImageColor color) {
  std::vector<Record> records(files.size());
  std::vector<ImageDecoding> images;
  for (std::size_t i = 0; i < files.size(); ++i) {
    images.push_back({std::as_bytes(std::span(files[i])), &records[i]});
  }
  decode_images(images, color);
  std::vector<std::string> outcomes;
  for (std::size_t i = 0; i < files.size(); ++i) {
    outcomes.push_back(images[i].outcome ? text_of(records[i])
                                         : images[i].outcome.error().message);
  }
  return outcomes;
}

TEST_CASE("parsers: every kind of image becomes the same bytes, or the same error") {
  Random random(test::fresh_seed());
  std::vector<std::string> files = all_kinds();
  const std::size_t kinds = files.size();
  for (std::size_t i = 0; i < kinds; ++i) {
    for (int change = 0; change < 30; ++change) {
      std::string changed = files[i];
      changed[static_cast<std::size_t>(random.below(changed.size()))] =
          static_cast<char>(random.below(256));
      files.push_back(changed.substr(0, changed.size() - random.below(3)));
    }
  }
  const std::vector<std::string> here = outcomes_of(files);
  const ParserProcesses parsers(parser_options());
  const std::vector<std::string> there = outcomes_of(files);
  for (std::size_t i = 0; i < here.size(); ++i) {
    INFO("file " << i / 3);
    CHECK((here[i] == there[i]));
  }
  // Good, damaged and those that need no parser, in groups.
  files.insert(files.begin() + 5, "P5 1 1 255\nx");
  std::size_t color = 0;
  for (const ImageColor each : {ImageColor::kNative, ImageColor::kColor, ImageColor::kGray}) {
    std::vector<std::string> together = outcomes_together(files, each);
    together.erase(together.begin() + 5);
    for (std::size_t i = 0; i < together.size(); ++i) {
      INFO("file " << i);
      CHECK((together[i] == here[3 * i + color]));
    }
    ++color;
  }
  CHECK(parsers.totals().started == 1);
  CHECK(parsers.totals().died == 0);
}

TEST_CASE("parsers: BMP and PNM, whose readers are ours, start none") {
  const ParserProcesses parsers(parser_options());
  CHECK(outcome_of("P5 1 1 255\nx", ImageColor::kNative) == "1x1x1:x");
  CHECK(outcome_of("GIF89a", ImageColor::kNative).find("neither PNG") != std::string::npos);
  CHECK(parsers.totals().started == 0);
}

#ifndef SPEEDO_SANITIZED
TEST_CASE("parsers: images that need more memory than a parser has are refused by name") {
  // 48 MB of pixels; 30 MB, and the 60 MB of their coefficients, which libjpeg keeps.
  const std::string large = jpeg_of(4000, 3), packed = jpeg_of(5500, 1, true);
  const ParserProcesses parsers(parser_options(kParserMiBMin));
  // What is left of one must not be missed by the next.
  for (int i = 0; i < 3; ++i) {
    CHECK(outcome_of(large, ImageColor::kColor) ==
          "holds an encoded image that needs more memory than a parser process may have: raise "
          "--parser-memory");
    const std::string refused = outcome_of(packed, ImageColor::kNative);
    CHECK(refused.substr(0, 60) == "holds an encoded image that is a damaged JPEG (Insufficient ");
    CHECK(outcome_of(jpeg_of(8, 1), ImageColor::kNative).starts_with("1x8x8:"));
  }
  CHECK(parsers.totals().died == 0);
}
#endif

auto open_list(FeedFactory& factory, const TempDir& folder, int batch_size) {
  return factory.open(
      layer_from("name: 'data' type: 'ImageData' image_data_param { is_color: false source: "
                 "'list.txt' shuffle: true batch_size: " +
                 std::to_string(batch_size) + " }"),
      {.seed = 5, .base = folder.path(), .top_count = 2});
}

void kill_parsers(int signal) {
  for (const pid_t child : test::children_of(::getpid(), "speedo-parser")) ::kill(child, signal);
}

// `disturbed`: before every tenth batch all parsers are killed, at whatever they do for the next
// ones. No image is read for that long, so none is struck twice.
std::vector<float> values_of(BatchFeed& feed, std::uint64_t batches, bool disturbed = false) {
  std::vector<float> values;
  for (std::uint64_t b = 0; b < batches; ++b) {
    if (disturbed && b % 10 == 5) kill_parsers(b % 20 == 5 ? SIGKILL : SIGSEGV);
    for (std::uint64_t ahead = 1; ahead < 3; ++ahead) feed.will_need(b + ahead);
    const auto tops = feed.read(b);
    if (!tops) FAIL(tops.error().message);
    for (const auto top : *tops) values.insert(values.end(), top.begin(), top.end());
  }
  return values;
}

TEST_CASE("parsers: a record that ends them is a bad record, named with its place") {
  const TempDir folder;
  write_gray_list(folder, 8, 5);
  const ParserProcesses parsers(brittle_options());
  {
    const auto factory = make_feed_factory(2);
    const auto feed = open_list(*factory, folder, 8);
    REQUIRE(feed);
    check_error((*feed)->read(0), ErrorCode::kData,
                "list.txt' line 6: '5.jpg' holds an encoded image that ends the process that reads "
                "it (SIGSEGV), and others in its place");
  }
  const std::int64_t died = parsers.totals().died;
  CHECK(died >= 2);
  const auto factory = make_feed_factory(2, OnBadRecord::kSkip);
  const auto feed = open_list(*factory, folder, 8);
  REQUIRE(feed);
  const std::vector<float> values = values_of(**feed, 3);
  CHECK(std::count(values.begin(), values.end(), 5.0F) == 0);
  CHECK(factory->totals().skipped_records == 1);
  CHECK(parsers.totals().died > died);
}

TEST_CASE("parsers: images that together need more room than there is are decoded all the same") {
  std::vector<std::string> files;
  for (const unsigned side : {8U, 1500U, 2000U, 8U, 1000U, 2500U, 9U, 2000U, 2000U, 8U, 7U}) {
    files.push_back(jpeg_of(side, side % 500 == 0 ? 1 : 3));
  }
  const std::vector<std::string> here = outcomes_together(files, ImageColor::kNative);
  const ParserProcesses parsers(parser_options(kParserMiBMin));
  CHECK((outcomes_together(files, ImageColor::kNative) == here));
  CHECK(parsers.totals().started == 1);
  CHECK(parsers.totals().died == 0);
}

TEST_CASE("parsers: of records read together only the one that ends them is left out") {
  const TempDir folder;
  constexpr int kImages = 64, kBad = 13;
  constexpr std::uint64_t kBatches = 3;
  const auto whole = [&] {
    const auto factory = make_feed_factory(2, OnBadRecord::kSkip);
    const auto feed = open_list(*factory, folder, kImages);
    if (!feed) FAIL(feed.error().message);
    const std::vector<float> values = values_of(**feed, kBatches);
    CHECK(factory->totals().skipped_records == 1);
    return values;
  };
  write_gray_list(folder, kImages);
  write_bytes(folder / (std::to_string(kBad) + ".jpg"), "\xFF\xD8\xFF no image");
  const std::vector<float> here = whole();
  write_gray_list(folder, kImages, kBad);
  const ParserProcesses parsers(brittle_options());
  CHECK((whole() == here));
  // Read once in each batch: the group's end, and three of its own.
  CHECK(parsers.totals().died % 4 == 0);
  CHECK(parsers.totals().died >= 4 * static_cast<std::int64_t>(kBatches));
}

TEST_CASE("parsers: batches are the same while others kill the processes that make them") {
  const TempDir folder;
  constexpr int kImages = 64;
  constexpr std::uint64_t kBatches = 120;
  write_gray_list(folder, kImages);
  const auto whole = [&](bool disturbed) {
    const auto factory = make_feed_factory(3);
    const auto feed = open_list(*factory, folder, 16);
    if (!feed) FAIL(feed.error().message);
    return values_of(**feed, kBatches, disturbed);
  };
  const std::vector<float> here = whole(false);
  const std::size_t files = test::open_descriptors();
  std::int64_t died = 0;
  {
    const ParserProcesses parsers(parser_options());
    CHECK((whole(true) == here));
    died = parsers.totals().died;
  }
  CHECK(died >= 12);
  CHECK(test::open_descriptors() == files);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("parsers: without their program images are read here, or not, as asked") {
  ParserOptions options;
  options.program = "/no/such/speedo-parser";
  const std::string file = jpeg_of(8, 1);
  {
    const ParserProcesses parsers(options);
    CHECK(outcome_of(file, ImageColor::kNative).starts_with("1x8x8:"));
  }
  options.use = ParserUse::kOn;
  {
    const ParserProcesses parsers(options);
    Record record;
    check_error(decode_image(std::as_bytes(std::span(file)), ImageColor::kNative, record),
                ErrorCode::kUnavailable, "cannot start '/no/such/speedo-parser'");
  }
  options = parser_options();
  options.use = ParserUse::kOff;
  const ParserProcesses parsers(options);
  CHECK(outcome_of(file, ImageColor::kNative).starts_with("1x8x8:"));
  CHECK(parsers.totals().started == 0);
}

}  // namespace
}  // namespace speedo
