#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <leveldb/db.h>
#include <speedo/base/random.hpp>

#include "data/datum/datum.hpp"
#include "data/leveldb/crc32c.hpp"
#include "data/leveldb/leveldb_source.hpp"
#include "data/leveldb/snappy.hpp"
#include "data/open_source.hpp"
#include "data_support.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

auto open_leveldb(const fs::path& path) { return LeveldbSource::open(path, ImageColor::kNative); }

std::unique_ptr<leveldb::DB> library(const fs::path& folder, leveldb::Options options = {}) {
  options.create_if_missing = true;
  leveldb::DB* database = nullptr;
  REQUIRE(leveldb::DB::Open(options, folder.string(), &database).ok());
  return std::unique_ptr<leveldb::DB>(database);
}

std::string datum_text(const Record& record) {
  caffe::Datum datum;
  std::string text;
  encode_datum(record, datum, text);
  return text;
}

// Every file of a folder, by name.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_bytes(entry.path());
  }
  return files;
}

std::vector<std::int64_t> labels_of(DataSource& source) {
  std::vector<std::int64_t> labels;
  Record record;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    REQUIRE(source.read(i, record));
    labels.push_back(record.label);
  }
  return labels;
}

// Small records share blocks, large ones fill them; some lie in tables, the newest in the log.
void write_mixed(const fs::path& folder) {
  leveldb::Options options;
  options.write_buffer_size = 200000;
  const auto database = library(folder, options);
  for (std::int64_t i = 0; i < 60; ++i) {
    const Record record = i % 3 == 0 ? numbered_record(i, 3, 80, 80) : numbered_record(i);
    REQUIRE(database->Put({}, std::to_string(1000 + i), datum_text(record)).ok());
    if (i == 44) database->CompactRange(nullptr, nullptr);  // what is there goes into tables
  }
}

TEST_CASE("LevelDB: records come back in key order, whatever their size") {
  const TempDir folder;
  MemorySource small(numbered_records(2500));
  REQUIRE(convert(small, {.output = folder / "small", .format = RecordFormat::kLevelDb}));
  const auto source = open_source((folder / "small").string(), {.kind = SourceKind::kLevelDb});
  REQUIRE(source);
  check_numbered(**source);
  Record record;
  write_mixed(folder / "mixed");
  const auto mixed = open_leveldb(folder / "mixed");
  REQUIRE(mixed);
  REQUIRE((*mixed)->size() == 60);
  for (const std::int64_t index : {59, 0, 1, 30, 58}) {
    REQUIRE((*mixed)->read(index, record));
    CHECK(record.bytes == (index % 3 == 0 ? numbered_record(index, 3, 80, 80).bytes
                                          : numbered_record(index).bytes));
  }
}

TEST_CASE("LevelDB: the library reads what we write, and --force replaces only a database") {
  const TempDir folder;
  const ConvertOptions options{.output = folder / "d", .format = RecordFormat::kLevelDb};
  MemorySource source(numbered_records(1200));
  REQUIRE(convert(source, options));
  {
    const auto database = library(folder / "d");
    std::string value;
    REQUIRE(database->Get({}, "00001199", &value).ok());
    CHECK(value == datum_text(numbered_record(1199)));
  }
  check_error(convert(source, options), ErrorCode::kCannotWrite, "exists already");
  MemorySource fewer(numbered_records(3));
  ConvertOptions forced = options;
  forced.force = true;
  REQUIRE(convert(fewer, forced));
  CHECK((*open_leveldb(folder / "d"))->size() == 3);
  write_bytes(folder / "d" / "thesis.txt", "x");
  check_error(convert(fewer, forced), ErrorCode::kCannotWrite, "not a LevelDB folder");
}

TEST_CASE("LevelDB: of each key the newest counts, and what was deleted is gone") {
  const TempDir folder;
  for (const bool compacted : {false, true}) {
    const fs::path path = folder / (compacted ? "tables" : "log");
    {
      const auto database = library(path);
      for (const std::int64_t round : {0, 100, 200}) {
        for (std::int64_t i = 0; i < 50; ++i) {
          const std::string key = std::to_string(1000 + i);
          REQUIRE(database->Put({}, key, datum_text(numbered_record(round + i))).ok());
          if (i % 7 == 0) REQUIRE(database->Delete({}, key).ok());
        }
        if (compacted && round < 200) database->CompactRange(nullptr, nullptr);
      }
    }
    const auto source = open_leveldb(path);
    REQUIRE(source);
    std::vector<std::int64_t> expected;
    for (std::int64_t i = 0; i < 50; ++i) {
      if (i % 7 != 0) expected.push_back(200 + i);
    }
    CHECK(labels_of(**source) == expected);
  }
}

TEST_CASE("LevelDB: reading takes no lock and writes nothing") {
  const TempDir folder;
  write_mixed(folder / "d");
  const auto before = contents(folder / "d");
  const auto database = library(folder / "d");  // has the lock
  const auto written = contents(folder / "d");
  const auto first = open_leveldb(folder / "d"), second = open_leveldb(folder / "d");
  REQUIRE(first);
  REQUIRE(second);
  CHECK(labels_of(**first) == labels_of(**second));
  CHECK(contents(folder / "d") == written);
  CHECK_FALSE(before.empty());
}

TEST_CASE("LevelDB: missing, empty and foreign databases are named errors") {
  const TempDir folder;
  check_error(open_leveldb(folder / "none"), ErrorCode::kNotFound, "none");
  library(folder / "empty");
  check_error(open_leveldb(folder / "empty"), ErrorCode::kData, "no records");
  fs::create_directory(folder / "text");
  write_bytes(folder / "text" / "CURRENT", "something else\n");
  check_error(open_leveldb(folder / "text"), ErrorCode::kData, "names no MANIFEST");
  write_mixed(folder / "d");
  check_error(open_source((folder / "d").string(), {.kind = SourceKind::kLmdb}), ErrorCode::kConfig,
              "backend: LEVELDB");
  // All of them: some may be left of a compaction, and no part of the database.
  for (const auto& [name, bytes] : contents(folder / "d")) {
    if (name.ends_with(".ldb")) fs::remove(folder / "d" / name);
  }
  check_error(open_leveldb(folder / "d"), ErrorCode::kData, "lacks its file 0000");
}

// What is read of a changed database is an error, or what was there before.
void expect_error_or_same(const fs::path& path, const std::vector<Record>& expected) {
  const auto source = open_leveldb(path);
  if (!source) {
    CHECK(source.error().message.find(path.string()) != std::string::npos);
    return;
  }
  Record record;
  for (std::int64_t i = 0; i < (*source)->size(); ++i) {
    if (!(*source)->read(i, record)) return;
    const auto same = [&](const Record& each) {
      return each.label == record.label && each.bytes == record.bytes;
    };
    REQUIRE(std::any_of(expected.begin(), expected.end(), same));
  }
}

TEST_CASE("LevelDB: a changed or cut file is an error, never a fault") {
  const TempDir folder;
  write_mixed(folder / "d");
  std::vector<Record> expected;
  for (std::int64_t i = 0; i < 60; ++i) {
    expected.push_back(i % 3 == 0 ? numbered_record(i, 3, 80, 80) : numbered_record(i));
  }
  Random random(test::fresh_seed());
  for (const auto& [name, whole] : contents(folder / "d")) {
    if (whole.empty()) continue;
    for (int i = 0; i < 40; ++i) {
      std::string bytes = whole;
      const auto at = static_cast<std::size_t>(random.below(bytes.size()));
      // Half of the changes at the end, where tables have what is not under a checksum.
      const std::size_t place =
          i % 2 == 0 ? at : bytes.size() - 1 - at % std::min<std::size_t>(48, at + 1);
      if (i % 4 == 3) {
        bytes.resize(at);
      } else {
        bytes[place] = static_cast<char>(random.below(256));
      }
      write_bytes(folder / "d" / name, bytes);
      expect_error_or_same(folder / "d", expected);
    }
    write_bytes(folder / "d" / name, whole);
  }
  CHECK((*open_leveldb(folder / "d"))->size() == 60);
}

TEST_CASE("CRC-32C and Snappy agree with their definitions") {
  const std::string digits = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(digits))) == 0xE3069283U);
  // Size 12, literal "abc", a copy of 9 bytes from 3 back.
  const std::string packed = std::string("\x0c\x08", 2) + "abc" + std::string("\x15\x03", 2);
  std::vector<std::byte> unpacked;
  REQUIRE(unpack_snappy(std::as_bytes(std::span(packed)), 12, unpacked));
  CHECK(std::string(reinterpret_cast<const char*>(unpacked.data()), unpacked.size()) ==
        "abcabcabcabc");
  const std::string bad = std::string("\x0c\x08", 2) + "abc" + std::string("\x15\x04", 2);
  CHECK_FALSE(unpack_snappy(std::as_bytes(std::span(bad)), 12, unpacked));
}

}  // namespace
}  // namespace speedo
