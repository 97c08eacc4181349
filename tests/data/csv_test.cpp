#include "data/csv.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/claimed_size.hpp"
#include "data/subset.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

auto parse(const TempDir& folder, const std::string& text, const CsvOptions& options = {}) {
  write_bytes(folder / "t.csv", text);
  return open_csv(folder / "t.csv", options);
}

TEST_CASE("a table becomes records: label last or first, scaled to bytes") {
  const TempDir folder;
  CsvOptions options{.dims = {1, 2, 2}, .scale = 16.0F, .offset = -1.0F};
  const auto last = parse(folder, "1.0,2,3,15.9,7\r\n\n 4 ,5,6,7, 8\n", options);
  REQUIRE(last);
  REQUIRE((*last)->size() == 2);
  Record record;
  REQUIRE((*last)->read(0, record));
  CHECK(record.bytes == std::vector<std::uint8_t>{15, 31, 47, 253});
  CHECK(record.label == 7);
  CHECK(record.height == 2);
  options = {.label_first = true, .header = true, .delimiter = ';', .floats = true};
  const auto first = parse(folder, "label;a;b\n-3;0.25;1e3", options);
  REQUIRE(first);
  REQUIRE((*first)->read(0, record));
  CHECK(record.label == -3);
  CHECK(record.floats == std::vector<float>{0.25F, 1000.0F});
  CHECK(record.channels == 2);
  const auto marked = parse(folder, "\xEF\xBB\xBF" "5,6.0,0\n");
  REQUIRE(marked);
  REQUIRE((*marked)->read(0, record));
  CHECK(record.bytes == std::vector<std::uint8_t>{5, 6});
}

TEST_CASE("a number of a table may have a plus sign, as a label of an image list may") {
  const TempDir folder;
  const auto table = parse(folder, "+4,+1\n");
  REQUIRE(table);
  Record record;
  REQUIRE((*table)->read(0, record));
  CHECK(record.label == 1);
  CHECK(record.bytes == std::vector<std::uint8_t>{4});
}

TEST_CASE("bad tables are errors with line and column") {
  const TempDir folder;
  check_error(open_csv(folder / "none.csv", {}), ErrorCode::kNotFound, "none.csv");
  check_error(parse(folder, ""), ErrorCode::kData, "no rows");
  check_error(parse(folder, "a,b\n", {.header = true}), ErrorCode::kData, "no rows");
  check_error(parse(folder, "1,2,3\n1,x,3\n"), ErrorCode::kData, "line 2, column 2: 'x'");
  check_error(parse(folder, "1,2,3\n1,,3\n"), ErrorCode::kData, "line 2, column 2: ''");
  check_error(parse(folder, "1,2,3\n1,2\n"), ErrorCode::kData, "line 2, column 2: the row has 2");
  check_error(parse(folder, "7\n8\n"), ErrorCode::kData,
              "line 1, column 1: a row needs a value and a label: check the delimiter ','");
  check_error(parse(folder, "7\n", {.dims = {1, 1, 1}}), ErrorCode::kData, "need 2");
  check_error(parse(folder, "1,+-2\n"), ErrorCode::kData, "'+-2' is not a number");
  check_error(parse(folder, "1,+\n"), ErrorCode::kData, "'+' is not a number");
  check_error(parse(folder, "1,2,0.5\n"), ErrorCode::kData, "label '0.5' is not a whole number");
  for (const std::string label : {"16777217", "-16777217", "5.0000000001", "1e30"}) {
    check_error(parse(folder, "1,2," + label + "\n"), ErrorCode::kData,
                "label '" + label + "' is not a whole number");
  }
  check_error(parse(folder, "1,256,0\n"), ErrorCode::kData, "column 2: 256 becomes 256");
  check_error(parse(folder, "-1,2,0\n"), ErrorCode::kData, "no byte");
  check_error(parse(folder, "nan,2,0\n"), ErrorCode::kData, "'nan' is not a number");
  check_error(parse(folder, "1,0.51,0\n"), ErrorCode::kData,
              "column 2: '0.51' is no whole number");
  check_error(parse(folder, std::string(1000, '1') + ",2\n"), ErrorCode::kData,
              '\'' + std::string(40, '1') + "...' is not a number");
  check_error(parse(folder, "1,2\x1b[31m,0\n"), ErrorCode::kData, "'2?[31m' is not a number");
  check_error(parse(folder, "1,2,0\n", {.dims = {1, 5, 5}}), ErrorCode::kData, "need 26");
  check_error(parse(folder, "1,2,0\n", {.dims = {1, 0, 5}}), ErrorCode::kConfig, "1x0x5");
  check_error(parse(folder, "1,2,0\n", {.dims = {1 << 20, 1 << 20, 1 << 20}}), ErrorCode::kConfig,
              "impossible");
}

TEST_CASE("records are split by count, by every k-th and by fraction") {
  using Indices = std::vector<std::int64_t>;
  CHECK(split_records(3, {})->train == Indices{0, 1, 2});
  CHECK(split_records(3, {})->test.empty());
  const auto by_count = split_records(5, {.train_count = 3});
  REQUIRE(by_count);
  CHECK(by_count->train == Indices{0, 1, 2});
  CHECK(by_count->test == Indices{3, 4});
  const auto by_every = split_records(7, {.test_every = 3});
  REQUIRE(by_every);
  CHECK(by_every->train == Indices{0, 1, 3, 4, 6});
  CHECK(by_every->test == Indices{2, 5});
  const auto by_fraction = split_records(10, {.test_fraction = 0.25});
  REQUIRE(by_fraction);
  CHECK(by_fraction->test == Indices{7, 8, 9});
  CHECK(split_records(10, {.first = 4, .count = 3})->train == Indices{4, 5, 6});
}

TEST_CASE("a shuffled split is a permutation fixed by its seed") {
  const auto one = split_records(100, {.shuffle_seed = 1, .train_count = 60});
  const auto same = split_records(100, {.shuffle_seed = 1, .train_count = 60});
  const auto other = split_records(100, {.shuffle_seed = 2, .train_count = 60});
  REQUIRE(one);
  CHECK(one->train == same->train);
  CHECK(one->train != other->train);
  std::vector<std::int64_t> all = one->train;
  all.insert(all.end(), one->test.begin(), one->test.end());
  std::sort(all.begin(), all.end());
  for (std::int64_t i = 0; i < 100; ++i) REQUIRE(all[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("records are dealt out by ratios, spread evenly, and none is lost") {
  using Parts = std::vector<std::vector<std::int64_t>>;
  CHECK(*deal_records({0, 1, 2, 3, 4, 5}, {1, 1, 1}) == Parts{{0, 3}, {1, 4}, {2, 5}});
  CHECK(*deal_records({9, 8, 7, 6}, {1}) == Parts{{9, 8, 7, 6}});
  CHECK(*deal_records({0, 1, 2, 3, 4}, {3, 2}) == Parts{{0, 2, 4}, {1, 3}});
  std::vector<std::int64_t> records(1000);
  std::iota(records.begin(), records.end(), 0);
  const std::vector<double> ratios = {2, 1.5, 1, 0.3, 0.01};
  const auto parts = deal_records(records, ratios);
  REQUIRE(parts);
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const std::vector<std::int64_t>& part = (*parts)[i];
    const double share = 1000.0 * ratios[i] / 4.81;
    CHECK(static_cast<double>(part.size()) >= std::floor(share));
    CHECK(static_cast<double>(part.size()) <= std::ceil(share));
    CHECK(std::is_sorted(part.begin(), part.end()));
    // As many of the first half as of the second.
    const auto early = std::count_if(part.begin(), part.end(), [](auto r) { return r < 500; });
    CHECK(std::abs(2 * early - static_cast<std::int64_t>(part.size())) <= 4);
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  CHECK(all == records);
  check_error(deal_records({1, 2}, {1, 1, 1}), ErrorCode::kUsage, "part 2 of 3");
  check_error(deal_records(records, {1, 1e-300}), ErrorCode::kUsage, "part 1 of 2");
}

TEST_CASE("splits that make no sense are refused") {
  const auto refused = [](const SplitOptions& options) {
    check_error(split_records(10, options), ErrorCode::kUsage, "");
  };
  refused({.first = 10});
  refused({.first = -1});
  refused({.first = 5, .count = 6});
  refused({.count = 0});
  refused({.train_count = 10});
  refused({.train_count = 0});
  refused({.test_every = 1});
  refused({.test_every = 11});
  refused({.test_fraction = 0.0});
  refused({.test_fraction = 1.5});
  refused({.test_fraction = 0.001});
  refused({.train_count = 3, .test_every = 3});
}

TEST_CASE("a table that memory cannot hold is refused by its name before it is read") {
  const TempDir folder;
  write_bytes(folder / "t.csv", "1,0\n");
  std::filesystem::resize_file(folder / "t.csv",
                               static_cast<std::uintmax_t>(process_memory().bytes) + 1);
  check_error(open_csv(folder / "t.csv", {}), ErrorCode::kData, "t.csv");
}

}  // namespace
}  // namespace speedo
