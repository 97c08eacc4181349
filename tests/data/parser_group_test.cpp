// Records that are read together, of which some cannot be read: the others, and what is said of
// those, are as if each had been read alone.

#include <algorithm>

#include "data/feed_factory.hpp"
#include "data/image/convert_images.hpp"
#include "data/image/mean.hpp"
#include "data/open_source.hpp"
#include "data/record_group.hpp"
#include "data/subset.hpp"
#include "datumfile_support.hpp"
#include "parser_support.hpp"

namespace speedo {
namespace {

// Of kRecords, each in the midst of a group: one ends the process that reads it, one is damaged.
constexpr int kRecords = 40, kBrittleImage = 13, kDamagedImage = 20;
// The end of a group's process, and of three that read the one image.
constexpr std::int64_t kDeaths = 4;

std::string image_file(int index) {
  if (index == kDamagedImage) return "\xFF\xD8\xFF no image";
  return index == kBrittleImage ? gray_jpeg(index) + kBrittle : gray_jpeg(index);
}

std::string datum_of(int index) {
  caffe::Datum datum;
  datum.set_encoded(true);
  datum.set_data(image_file(index));
  datum.set_label(index);
  return datum.SerializeAsString();
}

void write_datums(const TempDir& folder) {
  std::string file;
  for (int i = 0; i < kRecords; ++i) file += record_text("key" + std::to_string(i), datum_of(i));
  write_bytes(folder / "d", file);
}

// All but the two, in order.
void check_written(const TempDir& folder, const char* name) {
  const auto written = open_source((folder / name).string(), {});
  REQUIRE(written);
  REQUIRE((*written)->size() == kRecords - 2);
  Record record;
  std::int64_t place = 0;
  for (int i = 0; i < kRecords; ++i) {
    if (i == kBrittleImage || i == kDamagedImage) continue;
    REQUIRE((*written)->read(place++, record));
    CHECK(record.label == i);
    Record alone;
    const std::string file = image_file(i);
    REQUIRE(decode_image(std::as_bytes(std::span(file)), ImageColor::kNative, alone));
    CHECK((record.bytes == alone.bytes));
  }
}

TEST_CASE("groups: a conversion leaves out what cannot be read, or stops there") {
  const TempDir folder;
  write_datums(folder);
  const ParserProcesses parsers(brittle_options());
  const auto all = open_source((folder / "d").string(), {});
  REQUIRE(all);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < kRecords; ++i) indices.push_back(i);
  SubsetSource source(**all, indices);
  ConvertOptions options{.output = folder / "out", .format = RecordFormat::kDatumfile};
  std::vector<std::int64_t> progress;
  options.progress = [&](std::int64_t done, std::int64_t) { progress.push_back(done); };
  check_error(convert(source, options), ErrorCode::kData,
              "record 13 (key 'key13') holds an encoded image that ends the process that reads it");
  CHECK(parsers.totals().died == kDeaths);
  CHECK(progress.size() == kBrittleImage);
  CHECK_FALSE(std::filesystem::exists(options.output));
  options.on_bad_record = OnBadRecord::kSkip;
  const auto written = convert(source, options);
  REQUIRE(written);
  CHECK(*written == kRecords - 2);
  CHECK(parsers.totals().died == 2 * kDeaths);
  CHECK(progress.size() == kBrittleImage + kRecords);
  check_written(folder, "out");
}

TEST_CASE("groups: a mean is not made of records of which one cannot be read") {
  const TempDir folder;
  write_datums(folder);
  const ParserProcesses parsers(brittle_options());
  const auto source = open_source((folder / "d").string(), {});
  REQUIRE(source);
  check_error(compute_mean(**source, {}), ErrorCode::kData, "record 13 (key 'key13')");
  CHECK(parsers.totals().died == kDeaths);
}

TEST_CASE("groups: of a list's images those that cannot be read are left out, or the first told") {
  const TempDir folder;
  std::string list;
  for (int i = 0; i < kRecords; ++i) {
    write_bytes(folder / (std::to_string(i) + ".jpg"), image_file(i));
    list += std::to_string(i) + ".jpg " + std::to_string(i) + "\n";
  }
  write_bytes(folder / "list.txt", list);
  const auto converted = [&](const char* name, OnBadRecord policy, int threads) {
    auto images = ImageList::read(folder / "list.txt");
    if (!images) FAIL(images.error().message);
    ConvertImagesOptions options;
    options.output.output = folder / name;
    options.output.format = RecordFormat::kDatumfile;
    options.output.on_bad_record = policy;
    options.images.root = folder.path().string() + "/";
    options.images.color = ImageColor::kNative;
    options.threads = threads;
    return convert_images(*std::move(images), options);
  };
  const ParserProcesses parsers(brittle_options());
  check_error(converted("aborted", OnBadRecord::kAbort, 1), ErrorCode::kData,
              "list.txt' line 14: '" + folder.path().string() + "/13.jpg' holds an encoded image");
  CHECK(parsers.totals().died == kDeaths);
  for (const int threads : {1, 3}) {
    const std::string name = "out" + std::to_string(threads);
    const auto written = converted(name.c_str(), OnBadRecord::kSkip, threads);
    REQUIRE(written);
    CHECK(written->written == kRecords - 2);
    CHECK(written->skipped == 2);
    check_written(folder, name.c_str());
  }
  CHECK((read_bytes(folder / "out1") == read_bytes(folder / "out3")));
}

constexpr int kWindowImages = 8;

// Windows of gray images, one of each, which are small enough to be read in groups.
void write_windows_of(const TempDir& folder, const std::string& bad) {
  std::string text;
  for (int i = 0; i < kWindowImages; ++i) {
    const std::string name = std::to_string(i) + ".jpg";
    write_bytes(folder / name, i == 5 ? bad : i == 2 ? "\xFF\xD8\xFF no image" : gray_jpeg(i));
    text += "# " + std::to_string(i) + "\n" + name + "\n1 40 40\n1\n" + std::to_string(i + 1) +
            " 0.9 2 1 30 31\n";
  }
  write_bytes(folder / "w.txt", text);
}

// Its places are those of larger batches, and drawn alike.
constexpr int kSmallBatch = 12, kLargeBatch = 128;

struct WindowValues {
  std::vector<float> pixels, labels;
  std::int64_t skipped = 0;
  std::string error;  // if it cannot be read
  bool operator==(const WindowValues&) const = default;
};

WindowValues windows_of(const TempDir& folder, int batch_size, OnBadRecord policy) {
  const auto factory = make_feed_factory(2, policy);
  const auto feed = factory->open(
      layer_from("name: 'w' type: 'WindowData' window_data_param { source: 'w.txt' fg_fraction: 1 "
                 "batch_size: " +
                 std::to_string(batch_size) + " } transform_param { crop_size: 4 mirror: true }"),
      {.seed = 9, .base = folder.path(), .top_count = 2});
  if (!feed) FAIL(feed.error().message);
  const auto tops = (*feed)->read(0);
  WindowValues values;
  if (tops) {
    values.pixels.assign((*tops)[0].begin(), (*tops)[0].end());
    values.labels.assign((*tops)[1].begin(), (*tops)[1].end());
  } else {
    values.error = tops.error().message;
  }
  values.skipped = factory->totals().skipped_records;
  return values;
}

TEST_CASE("groups: WindowData draws again for windows whose image cannot be read, and only those") {
  static_assert(kSmallBatch < kLargeBatch);
  REQUIRE(records_together(16, kSmallBatch) == 1);
  REQUIRE(records_together(16, kLargeBatch) == 16);
  const TempDir folder;
  write_windows_of(folder, "\xFF\xD8\xFF no image");
  const WindowValues here = windows_of(folder, kLargeBatch, OnBadRecord::kSkip);
  CHECK(here.error.empty());
  CHECK(here.skipped == 2);
  CHECK(std::count(here.labels.begin(), here.labels.end(), 3.0F) == 0);
  CHECK(std::count(here.labels.begin(), here.labels.end(), 6.0F) == 0);
  const WindowValues alone = windows_of(folder, kSmallBatch, OnBadRecord::kSkip);
  CHECK((std::vector(here.labels.begin(), here.labels.begin() + kSmallBatch) == alone.labels));
  CHECK((std::vector(here.pixels.begin(), here.pixels.begin() + kSmallBatch * 16) ==
         alone.pixels));
  write_windows_of(folder, gray_jpeg(5) + kBrittle);
  const ParserProcesses parsers(brittle_options());
  CHECK((windows_of(folder, kLargeBatch, OnBadRecord::kSkip) == here));
  CHECK(parsers.totals().died > kDeaths);
}

TEST_CASE("groups: WindowData names the batch's first image that cannot be read") {
  const TempDir folder;
  write_windows_of(folder, gray_jpeg(5) + kBrittle);
  const ParserProcesses parsers(brittle_options());
  const WindowValues alone = windows_of(folder, kSmallBatch, OnBadRecord::kAbort);
  CHECK(alone.error.starts_with("window file '"));
  CHECK(alone.error.find(".jpg' holds an encoded image that ") != std::string::npos);
  CHECK(windows_of(folder, kLargeBatch, OnBadRecord::kAbort) == alone);
}

}  // namespace
}  // namespace speedo
