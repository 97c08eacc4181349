#include "data/datum/datum_source.hpp"
#include "data/open_source.hpp"
#include "data_support.hpp"
#include "datumfile_support.hpp"

namespace speedo {
namespace {

TEST_CASE("a datumfile gives back what was written, in file order") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kDatumfile, 7);
  const auto source = DatumSource::open_datumfile(folder / "d", ImageColor::kNative);
  REQUIRE(source);
  REQUIRE((*source)->size() == 7);
  Record record;
  for (const std::int64_t index : {6, 0, 3}) {
    REQUIRE((*source)->read(index, record));
    const Record expected = numbered_record(index);
    CHECK(record.bytes == expected.bytes);
    CHECK(record.label == index);
    CHECK(record.channels == 2);
    CHECK(record.height == 3);
    CHECK(record.width == 4);
  }
}

TEST_CASE("a datumfile's bytes are the fork's") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kDatumfile, 1);
  caffe::Datum datum;
  const Record expected = numbered_record(0);
  datum.set_channels(2);
  datum.set_height(3);
  datum.set_width(4);
  datum.set_data(expected.bytes.data(), expected.bytes.size());
  datum.set_label(0);
  CHECK(read_bytes(folder / "d") == record_text("00000000", datum.SerializeAsString()));
}

TEST_CASE("a datumfile cut at any byte is refused or ends at a record") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kDatumfile, 3);
  const std::string whole = read_bytes(folder / "d");
  const std::size_t record_bytes = whole.size() / 3;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    write_bytes(folder / "cut", whole.substr(0, cut));
    const auto source = DatumSource::open_datumfile(folder / "cut", ImageColor::kNative);
    const std::size_t records = cut / record_bytes, rest = cut % record_bytes;
    INFO("cut at " << cut);
    if (records > 0 && rest <= 3) {
      REQUIRE(source);
      CHECK((*source)->size() == static_cast<std::int64_t>(records));
    } else {
      check_error(source, ErrorCode::kData, cut <= 3 ? "no records" : "cut off");
    }
  }
}

TEST_CASE("a datumfile with bad sizes or values is refused") {
  const TempDir folder;
  const std::string over = little32_text(104857601);
  const auto open = [&](const std::string& bytes) {
    write_bytes(folder / "bad", bytes);
    return DatumSource::open_datumfile(folder / "bad", ImageColor::kNative);
  };
  check_error(open(over), ErrorCode::kData, "above the limit");
  check_error(open(little32_text(9) + over), ErrorCode::kData, "above the limit");
  check_error(open(little32_text(9) + little32_text(1) + "k" + over), ErrorCode::kData,
              "above the limit");
  check_error(open(little32_text(9) + little32_text(1) + "k" + little32_text(5) + "ab"),
              ErrorCode::kData, "5 bytes, 2 are left");
  check_error(DatumSource::open_datumfile(folder / "none", ImageColor::kNative),
              ErrorCode::kNotFound, "none");
  check_error(DatumSource::open_datumfile(folder.path(), ImageColor::kNative), ErrorCode::kData,
              "not a regular file");
}

TEST_CASE("a Datum that contradicts itself is an error that names record and key") {
  const TempDir folder;
  caffe::Datum datum;
  datum.set_channels(1);
  datum.set_height(2);
  datum.set_width(2);
  datum.set_data("abc");
  caffe::Datum huge;
  huge.set_channels(2147483647);
  huge.set_height(2147483647);
  huge.set_width(2147483647);
  caffe::Datum encoded;
  encoded.set_encoded(true);
  encoded.set_data("GIF89a");
  write_bytes(folder / "bad", record_text("one", datum.SerializeAsString()) +
                                  record_text("two", "\x0a\xff") +
                                  record_text("three", huge.SerializeAsString()) +
                                  record_text("four", encoded.SerializeAsString()));
  const auto source = DatumSource::open_datumfile(folder / "bad", ImageColor::kNative);
  REQUIRE(source);
  Record record;
  check_error((*source)->read(0, record), ErrorCode::kData, "record 0 (key 'one') has 3 bytes");
  check_error((*source)->read(1, record), ErrorCode::kData, "record 1 (key 'two') is not a Datum");
  check_error((*source)->read(2, record), ErrorCode::kData, "impossible dims");
  check_error((*source)->read(3, record), ErrorCode::kData, "neither PNG, JPEG");
}

TEST_CASE("float_data is read as floats") {
  const TempDir folder;
  Record record;
  record.channels = record.height = 1;
  record.width = 3;
  record.floats = {0.5F, -1.0F, 1e20F};
  MemorySource source({record});
  REQUIRE(convert(source, {.output = folder / "f", .format = RecordFormat::kDatumfile}));
  const auto opened = open_source((folder / "f").string(), {.kind = SourceKind::kDatumfile});
  REQUIRE(opened);
  Record back;
  REQUIRE((*opened)->read(0, back));
  CHECK(back.floats == record.floats);
  CHECK(back.bytes.empty());
}

}  // namespace
}  // namespace speedo
