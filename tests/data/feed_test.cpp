#include "data/feed_factory.hpp"

#include <set>

#include "core/layers/feed.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

std::string data_layer(const std::filesystem::path& source, int batch_size,
                       const std::string& more = "backend: DATUMFILE",
                       const std::string& rest = "") {
  return "name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: '" +
         source.string() + "' batch_size: " + std::to_string(batch_size) + " " + more + " } " +
         rest;
}

auto open_feed(const std::string& layer, FeedOptions options = {}) {
  if (options.top_count == 0) options.top_count = 2;
  return make_feed_factory()->open(layer_from(layer), options);
}

std::vector<float> labels(BatchFeed& feed, std::uint64_t batch) {
  const auto tops = feed.read(batch);
  REQUIRE(tops);
  return {tops->back().begin(), tops->back().end()};
}

TEST_CASE("a Data layer's batches follow the records round and round") {
  const TempDir folder;
  for (const auto format : {RecordFormat::kDatumfile, RecordFormat::kLmdb}) {
    const auto path = folder / (format == RecordFormat::kLmdb ? "lmdb" : "file");
    write_numbered(path, format, 7);
    const auto feed = open_feed(data_layer(
        path, 3, format == RecordFormat::kLmdb ? "backend: LMDB" : "backend: DATUMFILE"));
    REQUIRE(feed);
    CHECK((*feed)->record_count() == 7);
    CHECK((*feed)->shapes() == std::vector<Shape>{Shape{3, 2, 3, 4}, Shape{3}});
    CHECK(labels(**feed, 0) == std::vector<float>{0, 1, 2});
    CHECK(labels(**feed, 2) == std::vector<float>{6, 0, 1});
    CHECK(labels(**feed, 7) == std::vector<float>{0, 1, 2});
    CHECK(labels(**feed, 7000000002) == std::vector<float>{6, 0, 1});
    const auto tops = (*feed)->read(1);
    REQUIRE(tops);
    const Record fourth = numbered_record(4);
    for (std::size_t i = 0; i < fourth.bytes.size(); ++i) {
      REQUIRE((*tops)[0][24 + i] == static_cast<float>(fourth.bytes[i]));
    }
  }
}

TEST_CASE("one top gives images without labels") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kDatumfile, 4);
  FeedOptions options;
  options.top_count = 1;
  const auto feed = open_feed(data_layer(folder / "d", 2), options);
  REQUIRE(feed);
  CHECK((*feed)->shapes().size() == 1);
  const auto tops = (*feed)->read(0);
  REQUIRE(tops);
  CHECK(tops->size() == 1);
}

TEST_CASE("random crops depend on the place in the stream, not on the batch size") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kDatumfile, 10);
  const std::string transform = "transform_param { crop_size: 2 mirror: true }";
  FeedOptions options;
  options.seed = 5;
  const auto large =
      open_feed(data_layer(folder / "d", 8, "backend: DATUMFILE", transform), options);
  const auto small =
      open_feed(data_layer(folder / "d", 4, "backend: DATUMFILE", transform), options);
  options.seed = 6;
  const auto other =
      open_feed(data_layer(folder / "d", 8, "backend: DATUMFILE", transform), options);
  REQUIRE(large);
  REQUIRE(small);
  REQUIRE(other);
  const auto copy = [](BatchFeed& feed, std::uint64_t batch) {
    const auto tops = feed.read(batch);
    REQUIRE(tops);
    return std::vector<float>(tops->front().begin(), tops->front().end());
  };
  const std::vector<float> whole = copy(**large, 3);
  std::vector<float> parts = copy(**small, 6);
  const std::vector<float> second = copy(**small, 7);
  parts.insert(parts.end(), second.begin(), second.end());
  CHECK(whole == parts);
  CHECK(whole == copy(**large, 3));
  CHECK(whole != copy(**other, 3));
}

TEST_CASE("rand_skip and the start fraction move the beginning of the stream") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kDatumfile, 20);
  FeedOptions options;
  std::set<float> firsts;
  for (options.seed = 0; options.seed < 40; ++options.seed) {
    const auto feed =
        open_feed(data_layer(folder / "d", 2, "backend: DATUMFILE rand_skip: 5"), options);
    REQUIRE(feed);
    const std::vector<float> batch = labels(**feed, 0);
    CHECK(batch[1] == batch[0] + 1);
    firsts.insert(batch[0]);
  }
  CHECK(firsts == std::set<float>{0, 1, 2, 3, 4});
  options.start_fraction = 0.75;
  const auto feed =
      open_feed(data_layer(folder / "d", 2, "backend: DATUMFILE rand_skip: 20"), options);
  REQUIRE(feed);
  CHECK(labels(**feed, 0) == std::vector<float>{15, 16});
  CHECK(labels(**feed, 3) == std::vector<float>{1, 2});
}

TEST_CASE(
    "records of another shape are an error that names both, unless the crop makes them equal") {
  const TempDir folder;
  std::vector<Record> records = numbered_records(3);
  records.push_back(numbered_record(3, 2, 5, 5));
  MemorySource source(records);
  REQUIRE(convert(source, {.output = folder / "d", .format = RecordFormat::kDatumfile}));
  const auto plain = open_feed(data_layer(folder / "d", 2));
  REQUIRE(plain);
  CHECK((*plain)->read(0));
  check_error((*plain)->read(1), ErrorCode::kData, "record 3 is 2x5x5, but record 0 is 2x3x4");
  CHECK((*plain)->read(2));
  const auto cropped = open_feed(
      data_layer(folder / "d", 2, "backend: DATUMFILE", "transform_param { crop_size: 3 }"));
  REQUIRE(cropped);
  CHECK((*cropped)->read(1));
}

TEST_CASE("bad fields of data layers are refused") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kDatumfile, 4);
  check_error(open_feed("type: 'Data'"), ErrorCode::kConfig, "no source");
  check_error(open_feed(data_layer(folder / "d", 0)), ErrorCode::kConfig, "batch_size is 0");
  check_error(open_feed(data_layer(folder / "d", 2000000000)), ErrorCode::kConfig, "2000000000");
  check_error(open_feed(data_layer(folder / "none", 1)), ErrorCode::kNotFound, "none");
  check_error(open_feed(data_layer(folder / "d", 1, "backend: LEVELDB")), ErrorCode::kData,
              "a LevelDB database is a folder");
  check_error(open_feed(data_layer(folder / "d", 1, "backend: LMDB")), ErrorCode::kData,
              "not an LMDB header");
  check_error(open_feed(data_layer(folder / "d", 1, "backend: DATUMFILE",
                                   "transform_param { force_color: true force_gray: true }")),
              ErrorCode::kConfig, "exclude");
  check_error(open_feed(data_layer(folder / "d", 1, "backend: DATUMFILE",
                                   "transform_param { crop_size: 9 }")),
              ErrorCode::kConfig, "crop_size 9");
  check_error(open_feed("type: 'ReLU'"), ErrorCode::kConfig, "ReLU");
  check_error(open_feed("type: 'HDF5Data' top: 'a'"), ErrorCode::kConfig, "no source");
}

// Two files of 3 and 2 rows: data [n,2] = 10 row + column, label [n] = row, counted on.
void write_hdf5_pair(const TempDir& folder) {
  float row = 0;
  for (const int rows : {3, 2}) {
    const auto path = folder / ("part" + std::to_string(rows) + ".h5");
    auto file = Hdf5Writer::create(path);
    REQUIRE(file);
    std::vector<float> data, label;
    for (int i = 0; i < rows; ++i, ++row) {
      data.push_back(10 * row);
      data.push_back(10 * row + 1);
      label.push_back(row);
    }
    const std::int64_t dims[] = {rows, 2};
    REQUIRE(file->add_floats("data", dims, data));
    if (rows == 3) {
      REQUIRE(file->add_doubles("label", std::span(dims, 1),
                                std::vector<double>(label.begin(), label.end())));
    } else {
      REQUIRE(file->add_integers("label", std::vector<int>(label.begin(), label.end())));
    }
    REQUIRE(file->commit());
  }
  write_bytes(folder / "list.txt", "part3.h5\n" + (folder / "part2.h5").string() + "\n");
}

std::string hdf5_layer(const std::filesystem::path& list, const std::string& more) {
  return "name: 'h' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: '" +
         list.string() + "' " + more + " }";
}

TEST_CASE("an HDF5Data layer's rows go on across files and epochs, of any number type") {
  const TempDir folder;
  write_hdf5_pair(folder);
  const auto feed = open_feed(hdf5_layer(folder / "list.txt", "batch_size: 4"));
  REQUIRE(feed);
  CHECK((*feed)->record_count() == 5);
  CHECK((*feed)->shapes() == std::vector<Shape>{Shape{4, 2}, Shape{4}});
  CHECK(labels(**feed, 0) == std::vector<float>{0, 1, 2, 3});
  CHECK(labels(**feed, 1) == std::vector<float>{4, 0, 1, 2});
  CHECK(labels(**feed, 6) == std::vector<float>{4, 0, 1, 2});
  const auto tops = (*feed)->read(1);
  REQUIRE(tops);
  CHECK(std::vector<float>((*tops)[0].begin(), (*tops)[0].end()) ==
        std::vector<float>{40, 41, 0, 1, 10, 11, 20, 21});
}

TEST_CASE("a shuffled HDF5Data layer shows every row once an epoch, in another order each time") {
  const TempDir folder;
  write_hdf5_pair(folder);
  FeedOptions options;
  options.seed = 3;
  const auto feed =
      open_feed(hdf5_layer(folder / "list.txt", "batch_size: 5 shuffle: true"), options);
  const auto again =
      open_feed(hdf5_layer(folder / "list.txt", "batch_size: 5 shuffle: true"), options);
  REQUIRE(feed);
  REQUIRE(again);
  std::set<std::vector<float>> orders;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<float> order = labels(**feed, epoch);
    CHECK(std::set<float>(order.begin(), order.end()) == std::set<float>{0, 1, 2, 3, 4});
    orders.insert(order);
  }
  CHECK(orders.size() > 5);
  CHECK(labels(**again, 17) == labels(**feed, 17));
}

TEST_CASE("an HDF5 list may begin with a byte order mark") {
  const TempDir folder;
  write_hdf5_pair(folder);
  write_bytes(folder / "l", "\xEF\xBB\xBFpart3.h5\r\n");
  const auto feed = open_feed(hdf5_layer(folder / "l", "batch_size: 2"));
  REQUIRE(feed);
  CHECK((*feed)->record_count() == 3);
}

TEST_CASE("bad HDF5 lists and files are named errors") {
  const TempDir folder;
  write_hdf5_pair(folder);
  const auto open_list = [&](const std::string& list) {
    write_bytes(folder / "l", list);
    return open_feed(hdf5_layer(folder / "l", "batch_size: 2"));
  };
  check_error(open_feed(hdf5_layer(folder / "none", "batch_size: 2")), ErrorCode::kNotFound,
              "none");
  check_error(open_list(" \n"), ErrorCode::kData, "names no file");
  check_error(open_list("part3.h5 gone.h5"), ErrorCode::kNotFound, "gone.h5");
  check_error(open_list(read_bytes(folder / "part3.h5")), ErrorCode::kData,
              "is an HDF5 file itself");
  write_bytes(folder / "bad.h5", "no HDF5 at all");
  check_error(open_list("bad.h5"), ErrorCode::kData, "bad.h5");
  const std::string whole = read_bytes(folder / "part3.h5");
  write_bytes(folder / "cut.h5", whole.substr(0, whole.size() / 2));
  check_error(open_list("cut.h5"), ErrorCode::kData, "cut.h5");
  const auto with_rows = [&](std::int64_t data_rows, std::int64_t label_rows, std::int64_t width) {
    auto file = Hdf5Writer::create(folder / "odd.h5");
    REQUIRE(file);
    const std::int64_t dims[] = {data_rows, width};
    const std::vector<float> zeros(static_cast<std::size_t>(data_rows * width + label_rows));
    REQUIRE(file->add_floats("data", dims,
                             std::span(zeros).first(static_cast<std::size_t>(data_rows * width))));
    if (label_rows >= 0) {
      REQUIRE(file->add_floats("label", std::span(&label_rows, 1), zeros));
    }
    REQUIRE(file->commit());
  };
  with_rows(3, 4, 2);
  check_error(open_list("odd.h5"), ErrorCode::kData, "'label' has 4 rows, but 'data' has 3");
  with_rows(3, 3, 5);
  check_error(open_list("part3.h5 odd.h5"), ErrorCode::kData, "2 5 (10)");
  with_rows(0, 0, 2);
  check_error(open_list("odd.h5"), ErrorCode::kData, "hold no rows");
  auto file = Hdf5Writer::create(folder / "odd.h5");
  REQUIRE(file);
  REQUIRE(file->add_string("data", "text"));
  REQUIRE(file->commit());
  check_error(open_list("odd.h5"), ErrorCode::kData, "'data' is a single value");
  check_error(
      open_feed(hdf5_layer(folder / "list.txt", "batch_size: 2") + " transform_param { scale: 2 }"),
      ErrorCode::kConfig, "not transformed");
}

}  // namespace
}  // namespace speedo
