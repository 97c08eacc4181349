#include "data/convert.hpp"

#include <map>

#include "data/dataset_writer.hpp"
#include "data/feed_factory.hpp"
#include "data/folder_target.hpp"
#include "data/image/mean.hpp"
#include "data/open_source.hpp"
#include "data/subset.hpp"
#include "data_support.hpp"
#include "image_support.hpp"

namespace speedo {
namespace {

std::size_t entries(const TempDir& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

// Fails at record `bad`.
class FailingSource : public MemorySource {
 public:
  FailingSource(std::vector<Record> records, std::int64_t bad)
      : MemorySource(std::move(records)), bad_(bad) {}
  Result<void> read(std::int64_t index, Record& record) override {
    if (index == bad_) return Error{ErrorCode::kData, "bad record"};
    return MemorySource::read(index, record);
  }

 private:
  std::int64_t bad_;
};

TEST_CASE("a subset in another order is converted, with progress") {
  const TempDir folder;
  MemorySource all(numbered_records(10));
  SubsetSource some(all, {7, 2, 9});
  std::vector<std::int64_t> told;
  ConvertOptions options{.output = folder / "d", .format = RecordFormat::kLmdb};
  options.progress = [&](std::int64_t done, std::int64_t total) {
    CHECK(total == 3);
    told.push_back(done);
  };
  REQUIRE(convert(some, options));
  CHECK(told == std::vector<std::int64_t>{1, 2, 3});
  const auto source = open_source((folder / "d").string(), {});
  REQUIRE(source);
  Record record;
  REQUIRE((*source)->read(2, record));
  CHECK(record.label == 9);
}

TEST_CASE("HDF5 output is split into files, and the list feeds an HDF5Data layer") {
  const TempDir folder;
  MemorySource source(numbered_records(10));
  // 24 values and a label are 100 bytes; three rows fit.
  REQUIRE(convert(
      source,
      {.output = folder / "train.txt", .format = RecordFormat::kHdf5, .hdf5_file_bytes_max = 320}));
  CHECK(entries(folder) == 5);
  const auto feed = make_feed_factory()->open(
      layer_from(
          "type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { batch_size: 10 source: '" +
          (folder / "train.txt").string() + "' }"),
      {.base = {}, .top_count = 2});
  REQUIRE(feed);
  CHECK((*feed)->shapes() == std::vector<Shape>{Shape{10, 2, 3, 4}, Shape{10}});
  const auto tops = (*feed)->read(0);
  REQUIRE(tops);
  for (std::size_t i = 0; i < 10; ++i) {
    REQUIRE((*tops)[1][i] == static_cast<float>(i));
    const Record expected = numbered_record(static_cast<std::int64_t>(i));
    for (std::size_t v = 0; v < 24; ++v) {
      REQUIRE((*tops)[0][i * 24 + v] == static_cast<float>(expected.bytes[v]));
    }
  }
}

std::vector<float> labels_of_list(const std::filesystem::path& list, int batch_size) {
  const auto feed = make_feed_factory()->open(
      layer_from("type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { batch_size: " +
                 std::to_string(batch_size) + " source: '" + list.string() + "' }"),
      {.base = {}, .top_count = 2});
  INFO((feed ? std::string() : feed.error().message));
  REQUIRE(feed);
  const auto tops = (*feed)->read(0);
  REQUIRE(tops);
  return {(*tops)[1].begin(), (*tops)[1].end()};
}

TEST_CASE("HDF5 output whose name has blanks is read again; a line may name several files") {
  const TempDir folder;
  MemorySource source(numbered_records(3));
  std::filesystem::create_directory(folder / "my data");
  const auto list = folder / "my data" / "a b.txt";
  REQUIRE(convert(source, {.output = list, .format = RecordFormat::kHdf5}));
  CHECK(labels_of_list(list, 3) == std::vector<float>{0, 1, 2});
  REQUIRE(convert(source, {.output = folder / "c.txt", .format = RecordFormat::kHdf5}));
  write_bytes(folder / "both.txt", " my data/a b_0.h5 \r\n\nc_0.h5 c_0.h5\nc_0.h5");
  CHECK(labels_of_list(folder / "both.txt", 12) ==
        std::vector<float>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("HDF5 output replaces no data with a list, and no list with data") {
  const TempDir folder;
  MemorySource source(numbered_records(3));
  ConvertOptions options{
      .output = folder / "m.h5", .format = RecordFormat::kHdf5, .force = true};
  REQUIRE(convert(source, options));
  const std::string data = read_bytes(folder / "m_0.h5");
  options.output = folder / "m_0.h5";
  check_error(convert(source, options), ErrorCode::kCannotWrite, "m_0.h5' is an HDF5 file");
  CHECK(read_bytes(folder / "m_0.h5") == data);
  CHECK(entries(folder) == 2);
  write_bytes(folder / "l_0.h5", "other_0.h5\n");
  options.output = folder / "l.h5";
  check_error(convert(source, options), ErrorCode::kCannotWrite, "l_0.h5' is no HDF5 file");
  CHECK(read_bytes(folder / "l_0.h5") == "other_0.h5\n");
  CHECK(entries(folder) == 3);
}

TEST_CASE("converters replace nothing unless forced, and only data of their own kind") {
  const TempDir folder;
  MemorySource source(numbered_records(3));
  const std::map<RecordFormat, std::string> names{{RecordFormat::kLmdb, "lmdb"},
                                                  {RecordFormat::kLevelDb, "leveldb"},
                                                  {RecordFormat::kDatumfile, "file"},
                                                  {RecordFormat::kHdf5, "list.txt"}};
  for (const auto& [format, name] : names) {
    ConvertOptions options{.output = folder / name, .format = format};
    REQUIRE(convert(source, options));
    check_error(convert(source, options), ErrorCode::kCannotWrite, "exists already");
    options.force = true;
    CHECK(convert(source, options));
  }
  for (const char* name : {"lmdb", "leveldb"}) {
    const auto format = std::string(name) == "lmdb" ? RecordFormat::kLmdb : RecordFormat::kLevelDb;
    std::filesystem::create_directory_symlink(name, folder / (std::string("to_") + name));
    for (const std::string& path : {std::string(name) + "/", std::string("to_") + name,
                                   std::string("new_") + name + "/"}) {
      CAPTURE(path);
      const auto done =
          convert(source, {.output = folder / path, .format = format, .force = true});
      INFO((done ? std::string() : done.error().message));
      REQUIRE(done);
      CHECK_FALSE(std::filesystem::is_empty(folder / name));
      CHECK(std::filesystem::is_symlink(folder / (std::string("to_") + name)));
    }
    CHECK_FALSE(std::filesystem::is_empty(folder / (std::string("new_") + name)));
  }
  std::filesystem::create_directory(folder / "precious");
  write_bytes(folder / "precious" / "thesis.txt", "x");
  for (const auto format :
       {RecordFormat::kLmdb, RecordFormat::kLevelDb, RecordFormat::kDatumfile}) {
    check_error(convert(source, {.output = folder / "precious", .format = format, .force = true}),
                ErrorCode::kCannotWrite, "precious");
  }
  CHECK(read_bytes(folder / "precious" / "thesis.txt") == "x");
}

TEST_CASE("an output whose folder is not there is an error that names the folder") {
  const TempDir folder;
  MemorySource source(numbered_records(3));
  for (const RecordFormat format :
       {RecordFormat::kLmdb, RecordFormat::kLevelDb, RecordFormat::kDatumfile}) {
    check_error(convert(source, {.output = folder / "none" / "d", .format = format}),
                ErrorCode::kCannotWrite,
                "its folder '" + (folder / "none").string() + "' does not exist: create it");
  }
  CHECK(entries(folder) == 0);
}

TEST_CASE("a failure in the middle leaves nothing behind") {
  const TempDir folder;
  for (const auto format : {RecordFormat::kLmdb, RecordFormat::kLevelDb, RecordFormat::kDatumfile,
                            RecordFormat::kHdf5}) {
    FailingSource source(numbered_records(20), 15);
    CHECK_FALSE(convert(source, {.output = folder / "d", .format = format}));
    CHECK(entries(folder) == 0);
    MemorySource good(numbered_records(2));
    check_error(convert(good, {.output = folder / "none" / "d", .format = format}),
                ErrorCode::kCannotWrite, "d");
  }
}

TEST_CASE("a conversion that is stopped says how far it came, and leaves nothing behind") {
  const TempDir folder;
  for (const auto format : {RecordFormat::kLmdb, RecordFormat::kLevelDb, RecordFormat::kDatumfile,
                            RecordFormat::kHdf5}) {
    MemorySource source(numbered_records(20));
    int asked = 0;
    ConvertOptions options{.output = folder / "d", .format = format};
    options.stopped = [&] { return ++asked == 15; };
    check_error(convert(source, options), ErrorCode::kUnavailable, "after 15 of 20 records");
    CHECK(entries(folder) == 0);
  }
}

TEST_CASE("HDF5 output refuses images of several sizes") {
  const TempDir folder;
  MemorySource source({numbered_record(0), numbered_record(1, 2, 4, 4)});
  check_error(convert(source, {.output = folder / "l", .format = RecordFormat::kHdf5}),
              ErrorCode::kData, "record 00000001 is 2x4x4, but the first is 2x3x4");
}

// A database of one gray and two color images, encoded, with a field that only Caffe's own have.
std::vector<std::string> encoded_datums() {
  std::vector<std::string> datums;
  for (int i = 0; i < 3; ++i) {
    caffe::Datum datum;
    const std::vector<std::uint8_t> pixels(i == 0 ? 6 : 18, static_cast<std::uint8_t>(50 * i));
    datum.set_data(i == 0 ? png_file(PNG_COLOR_TYPE_GRAY, 8, pixels, 1)
                          : png_file(PNG_COLOR_TYPE_RGB, 8, pixels, 3));
    datum.set_label(i);
    datum.set_encoded(true);
    datum.set_height(7);  // as it says, not as the image is
    datums.push_back(datum.SerializeAsString());
  }
  return datums;
}

void write_datums(const std::filesystem::path& path, const std::vector<std::string>& datums) {
  const auto writer = make_database_writer({.output = path, .format = RecordFormat::kDatumfile});
  REQUIRE(writer);
  for (std::size_t i = 0; i < datums.size(); ++i) {
    REQUIRE((*writer)->put("0000000" + std::to_string(i), datums[i]));
  }
  REQUIRE((*writer)->commit());
}

TEST_CASE("a database's Datums are copied as they are, encoded images too") {
  const TempDir folder;
  const std::vector<std::string> datums = encoded_datums();
  write_datums(folder / "from", datums);
  write_datums(folder / "wanted", {datums[2], datums[0]});
  for (const auto format :
       {RecordFormat::kLmdb, RecordFormat::kLevelDb, RecordFormat::kDatumfile}) {
    const std::string name = "to" + std::to_string(static_cast<int>(format));
    const auto from = open_source((folder / "from").string(), {});
    REQUIRE(from);
    SubsetSource some(**from, {2, 0});
    REQUIRE(convert(some, {.output = folder / name, .format = format}));
    const auto made = open_source((folder / name).string(), {});
    REQUIRE(made);
    const auto back = folder / (name + "_back");
    REQUIRE(convert(**made, {.output = back, .format = RecordFormat::kDatumfile}));
    CHECK(read_bytes(back) == read_bytes(folder / "wanted"));
  }
}

TEST_CASE("an encoded image that cannot be read is a bad record, though it would be copied") {
  const TempDir folder;
  std::vector<std::string> datums = encoded_datums();
  caffe::Datum datum;
  datum.set_data("no image");
  datum.set_encoded(true);
  datums[1] = datum.SerializeAsString();
  write_datums(folder / "from", datums);
  write_datums(folder / "wanted", {datums[0], datums[2]});
  const auto from = open_source((folder / "from").string(), {});
  REQUIRE(from);
  ConvertOptions options{.output = folder / "to", .format = RecordFormat::kDatumfile};
  check_error(convert(**from, options), ErrorCode::kData, "record 1");
  options.on_bad_record = OnBadRecord::kSkip;
  CHECK(convert(**from, options).value() == 2);
  CHECK(read_bytes(folder / "to") == read_bytes(folder / "wanted"));
}

TEST_CASE("HDF5 output of encoded images are their pixels, of one size") {
  const TempDir folder;
  const std::vector<std::string> datums = encoded_datums();
  write_datums(folder / "from", datums);
  const auto from = open_source((folder / "from").string(), {});
  REQUIRE(from);
  check_error(convert(**from, {.output = folder / "all", .format = RecordFormat::kHdf5}),
              ErrorCode::kData, "record 00000001 is 3x2x3, but the first is 1x2x3");
  SubsetSource color(**from, {2, 1});
  REQUIRE(convert(color, {.output = folder / "color", .format = RecordFormat::kHdf5}));
  CHECK(labels_of_list(folder / "color", 2) == std::vector<float>{2, 1});
}

TEST_CASE("the mean is that of the pixels, in the old dims") {
  MemorySource source(numbered_records(3, 1, 1, 2));  // pixels 0 1, 31 32, 62 63
  const auto mean = compute_mean(source);
  REQUIRE(mean);
  CHECK(mean->num() == 1);
  CHECK(mean->channels() == 1);
  CHECK(mean->height() == 1);
  CHECK(mean->width() == 2);
  CHECK_FALSE(mean->has_shape());
  CHECK(std::vector<float>(mean->data().begin(), mean->data().end()) == std::vector<float>{31, 32});
  MemorySource mixed({numbered_record(0), numbered_record(1, 2, 4, 4)});
  check_error(compute_mean(mixed), ErrorCode::kData, "record 1 is 2x4x4");
}

TEST_CASE("a database stays where another one cannot take its place, and nothing lies beside it") {
  const TempDir folder;
  write_numbered(folder / "db", RecordFormat::kLmdb, 3);
  const FolderTarget target{folder / "db", "an LMDB",
                            [](const std::filesystem::path&) { return true; }};
  {
    auto made = folder_beside(target);
    REQUIRE(made);
    // Nothing was written there.
    check_error(replace_target(target, true, *made), ErrorCode::kCannotWrite, "db");
  }
  CHECK(entries(folder) == 1);
  const auto source = open_source((folder / "db").string(), {});
  REQUIRE(source);
  CHECK((*source)->size() == 3);
}

}  // namespace
}  // namespace speedo
