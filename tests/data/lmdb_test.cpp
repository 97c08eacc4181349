#include <lmdb.h>
#include <speedo/base/random.hpp>

#include "data/dataset_writer.hpp"
#include "data/datum/datum_source.hpp"
#include "data/open_source.hpp"
#include "data_support.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

auto open_lmdb(const std::filesystem::path& path) {
  return DatumSource::open_lmdb(path, ImageColor::kNative);
}

// Writes a database with the library itself; `flags` as for mdb_dbi_open.
void write_with_library(const std::filesystem::path& folder, const char* name, unsigned flags,
                        const std::vector<std::pair<std::string, std::string>>& records) {
  std::filesystem::create_directories(folder);
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi database = 0;
  REQUIRE(mdb_env_create(&environment) == 0);
  mdb_env_set_maxdbs(environment, 2);
  mdb_env_set_mapsize(environment, 16U << 20U);
  REQUIRE(mdb_env_open(environment, folder.c_str(), 0, 0644) == 0);
  REQUIRE(mdb_txn_begin(environment, nullptr, 0, &transaction) == 0);
  REQUIRE(mdb_dbi_open(transaction, name, flags, &database) == 0);
  for (auto [key, value] : records) {
    MDB_val key_value{key.size(), key.data()}, data_value{value.size(), value.data()};
    REQUIRE(mdb_put(transaction, database, &key_value, &data_value, 0) == 0);
  }
  REQUIRE(mdb_txn_commit(transaction) == 0);
  mdb_env_close(environment);
}

TEST_CASE("LMDB: records come back in key order, whatever their size") {
  const TempDir folder;
  MemorySource small(numbered_records(2500));
  REQUIRE(convert(small, {.output = folder / "small", .format = RecordFormat::kLmdb}));
  const auto source = open_lmdb(folder / "small");
  REQUIRE(source);
  check_numbered(**source);
  Record record;
  // Values larger than a page lie on pages of their own.
  MemorySource large(numbered_records(30, 3, 64, 64));
  REQUIRE(convert(large, {.output = folder / "large", .format = RecordFormat::kLmdb}));
  const auto second = open_lmdb(folder / "large" / "data.mdb");
  REQUIRE(second);
  REQUIRE((*second)->read(29, record));
  CHECK(record.bytes == numbered_record(29, 3, 64, 64).bytes);
}

TEST_CASE("LMDB: the map grows with the data") {
  const TempDir folder;
  std::vector<Record> records(23, numbered_record(1, 3, 1000, 1000));
  MemorySource source(std::move(records));
  REQUIRE(convert(source, {.output = folder / "d", .format = RecordFormat::kLmdb}));
  const auto opened = open_lmdb(folder / "d");
  REQUIRE(opened);
  CHECK((*opened)->size() == 23);
}

TEST_CASE("LMDB: the library reads what we write") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kLmdb, 1200);
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi database = 0;
  MDB_stat stat{};
  REQUIRE(mdb_env_create(&environment) == 0);
  REQUIRE(mdb_env_open(environment, (folder / "d").c_str(), MDB_RDONLY | MDB_NOLOCK, 0644) == 0);
  REQUIRE(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction) == 0);
  REQUIRE(mdb_dbi_open(transaction, nullptr, 0, &database) == 0);
  REQUIRE(mdb_stat(transaction, database, &stat) == 0);
  CHECK(stat.ms_entries == 1200);
  std::string key = "00001199";
  MDB_val key_value{key.size(), key.data()}, value{};
  REQUIRE(mdb_get(transaction, database, &key_value, &value) == 0);
  caffe::Datum datum;
  REQUIRE(datum.ParseFromArray(value.mv_data, static_cast<int>(value.mv_size)));
  CHECK(datum.label() == 1199);
  CHECK_FALSE(datum.has_encoded());
  mdb_txn_abort(transaction);
  mdb_env_close(environment);
}

TEST_CASE("LMDB: large records wait for no thousand others before they are written") {
  const TempDir folder;
  const auto writer = make_database_writer({.output = folder / "d", .format = RecordFormat::kLmdb});
  REQUIRE(writer);
  for (const char* key : {"0", "1", "2"}) {
    REQUIRE((*writer)->put(key, std::string(std::size_t{33} << 20U, key[0])));
  }
  REQUIRE((*writer)->commit());
  MDB_env* environment = nullptr;
  MDB_envinfo info{};
  REQUIRE(mdb_env_create(&environment) == 0);
  REQUIRE(mdb_env_open(environment, (folder / "d").c_str(), MDB_RDONLY | MDB_NOLOCK, 0644) == 0);
  REQUIRE(mdb_env_info(environment, &info) == 0);
  CHECK(info.me_last_txnid == 2);  // the first two, and the rest
  mdb_env_close(environment);
}

TEST_CASE("LMDB: missing, empty and foreign databases are named errors") {
  const TempDir folder;
  check_error(open_lmdb(folder / "none"), ErrorCode::kNotFound, "none");
  check_error(open_lmdb(folder.path()), ErrorCode::kNotFound, "data.mdb");
  write_with_library(folder / "empty", nullptr, 0, {});
  check_error(open_lmdb(folder / "empty"), ErrorCode::kData, "no records");
  write_bytes(folder / "text.mdb", std::string(20000, 'x'));
  check_error(open_lmdb(folder / "text.mdb"), ErrorCode::kData, "not an LMDB header");
  write_bytes(folder / "zero.mdb", "");
  check_error(open_lmdb(folder / "zero.mdb"), ErrorCode::kData, "shorter than an LMDB header");
  write_with_library(folder / "named", "inner", MDB_CREATE, {{"a", "b"}});
  check_error(open_lmdb(folder / "named"), ErrorCode::kUnsupported, "named databases");
  write_with_library(folder / "doubles", nullptr, MDB_DUPSORT, {{"a", "b"}, {"a", "c"}});
  check_error(open_lmdb(folder / "doubles"), ErrorCode::kUnsupported, "duplicate");
}

TEST_CASE("LMDB: a damaged node is not taken for a named database's") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kLmdb, 3);
  std::string bytes = read_bytes(folder / "d" / "data.mdb");
  constexpr std::size_t kFlagsBeforeKey = 4;
  const std::size_t flags = bytes.rfind("00000001") - kFlagsBeforeKey;
  REQUIRE(flags < bytes.size());
  for (const char flag : {'\x02', '\x04', '\x06', '\x08', '\x03'}) {
    bytes[flags] = flag;
    write_bytes(folder / "bad.mdb", bytes);
    check_error(open_lmdb(folder / "bad.mdb"), ErrorCode::kData, "a node of an unknown kind");
  }
}

TEST_CASE("LMDB: deleted and rewritten records do not confuse the walk") {
  const TempDir folder;
  std::vector<std::pair<std::string, std::string>> records;
  for (int i = 0; i < 500; ++i)
    records.emplace_back(std::to_string(1000 + i), std::string(300, 'a'));
  write_with_library(folder / "d", nullptr, 0, records);
  for (auto& record : records) record.second = std::string(9000, 'b');
  write_with_library(folder / "d", nullptr, 0, records);
  const auto file = RandomFile::open(folder / "d" / "data.mdb");
  REQUIRE(file);
  const auto index = index_lmdb(*file);
  REQUIRE(index);
  REQUIRE(index->size() == 500);
  for (const RecordExtent& extent : *index) REQUIRE(extent.value_bytes == 9000);
}

TEST_CASE("LMDB: a file cut at any page is an error, never a fault") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kLmdb, 200);
  const std::string whole = read_bytes(folder / "d" / "data.mdb");
  for (std::size_t cut = 0; cut < whole.size(); cut += 1024) {
    write_bytes(folder / "cut.mdb", whole.substr(0, cut));
    const auto source = open_lmdb(folder / "cut.mdb");
    INFO("cut at " << cut);
    REQUIRE_FALSE(source);
    CHECK(source.error().code == ErrorCode::kData);
  }
}

TEST_CASE("LMDB: pages that a value has for itself are looked at when it is read, not before") {
  const TempDir folder;
  std::vector<std::pair<std::string, std::string>> records;
  for (int i = 0; i < 3; ++i) {
    caffe::Datum datum;
    datum.set_channels(1);
    datum.set_height(90);
    datum.set_width(100);
    datum.set_label(i);
    datum.set_data(std::string(9000, static_cast<char>('a' + i)));
    records.emplace_back(std::to_string(i), datum.SerializeAsString());
  }
  write_with_library(folder / "d", nullptr, 0, records);
  const auto whole = open_lmdb(folder / "d");
  REQUIRE(whole);
  Record record;
  for (int i = 0; i < 3; ++i) {
    REQUIRE((*whole)->read(i, record));
    CHECK(record.label == i);
    CHECK(record.bytes == std::vector<std::uint8_t>(9000, static_cast<std::uint8_t>('a' + i)));
  }
  const auto file = RandomFile::open(folder / "d" / "data.mdb");
  REQUIRE(file);
  const RecordExtent second = index_lmdb(*file)->at(1);
  REQUIRE(second.page_bytes > 0);
  const std::string bytes = read_bytes(folder / "d" / "data.mdb");
  // The page's number, its kind, how many there are.
  for (const std::size_t at : {0U, 10U, 12U}) {
    CAPTURE(at);
    std::string damaged = bytes;
    damaged[second.value_offset - kValueHeaderBytes + at] ^= 0x7F;
    if (at == 12) damaged[second.value_offset - kValueHeaderBytes + at] = 1;
    write_bytes(folder / "bad.mdb", damaged);
    const auto source = open_lmdb(folder / "bad.mdb");
    REQUIRE(source);
    check_error((*source)->read(1, record), ErrorCode::kData, "does not hold the value");
    REQUIRE((*source)->read(2, record));
    CHECK(record.label == 2);
  }
}

TEST_CASE("LMDB: a file that shrinks while it is open is an error") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kLmdb, 200);
  const auto source = open_lmdb(folder / "d");
  REQUIRE(source);
  std::filesystem::resize_file(folder / "d" / "data.mdb", 4096);
  Record record;
  check_error((*source)->read(199, record), ErrorCode::kData, "truncated");
}

std::string with_flipped_bit(std::string bytes, std::size_t at, unsigned bit) {
  bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ 1U << bit);
  return bytes;
}

TEST_CASE("LMDB: any flipped bit of a header's mark, of a page's number or of its kind is seen") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kLmdb, 20);
  const std::string whole = read_bytes(folder / "d" / "data.mdb");
  constexpr std::size_t kPageBytes = 4096;
  const auto file = RandomFile::open(folder / "d" / "data.mdb");
  REQUIRE(file);
  REQUIRE(index_lmdb(*file)->size() == 20);
  // Magic and version in both headers; number and kind of the one page that has all records.
  const std::size_t leaf = index_lmdb(*file)->front().value_offset / kPageBytes * kPageBytes;
  std::vector<std::size_t> places;
  for (const std::size_t header : {std::size_t{0}, kPageBytes}) {
    for (std::size_t at = 16; at < 24; ++at) places.push_back(header + at);
  }
  for (std::size_t at = 0; at < 8; ++at) places.push_back(leaf + at);
  int refused = 0;
  for (const std::size_t at : places) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      write_bytes(folder / "bad.mdb", with_flipped_bit(whole, at, bit));
      CAPTURE(at, bit);
      const auto source = open_lmdb(folder / "bad.mdb");
      CHECK_FALSE(source);
      refused += source ? 0 : 1;
    }
  }
  CHECK(refused == 24 * 8);
}

TEST_CASE("LMDB: flipped bits give an error or wrong pixels, never a fault or a hang") {
  const TempDir folder;
  write_numbered(folder / "d", RecordFormat::kLmdb, 150);
  const std::string whole = read_bytes(folder / "d" / "data.mdb");
  const std::uint64_t seed = GENERATE(from_range(test::seeds({20260721})));
  CAPTURE(seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    for (int flip = 0; flip < 8; ++flip) {
      const auto at = static_cast<std::size_t>(random.below(damaged.size()));
      damaged = with_flipped_bit(std::move(damaged), at, static_cast<unsigned>(random.below(8)));
    }
    write_bytes(folder / "bad.mdb", damaged);
    const auto source = open_lmdb(folder / "bad.mdb");
    if (!source) {
      REQUIRE_FALSE(source.error().message.empty());
      continue;
    }
    Record record;
    for (std::int64_t index = 0; index < (*source)->size(); ++index) {
      const auto read = (*source)->read(index, record);
      const std::size_t values = record.bytes.size() + record.floats.size();
      if (read) REQUIRE(record.count() == static_cast<std::int64_t>(values));
    }
  }
}

}  // namespace
}  // namespace speedo
