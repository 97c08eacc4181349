#include "data/hdf5/hdf5_file.hpp"

#include <thread>

#include "data_support.hpp"

namespace speedo {
namespace {

TEST_CASE("HDF5: what is written comes back") {
  const TempDir folder;
  const auto path = folder / "f.h5";
  {
    auto file = Hdf5Writer::create(path);
    REQUIRE(file);
    const std::int64_t dims[] = {2, 3};
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    REQUIRE(file->add_floats("/a/b/matrix", dims, values));
    REQUIRE(file->add_floats("/scalar", {}, std::vector<float>{7.5F}));
    REQUIRE(file->add_integers("/number", std::vector<int>{42}));
    REQUIRE(file->add_string("/text", "hello"));
    REQUIRE(file->add_string("/nothing", ""));
    REQUIRE(file->add_group("/empty/inner"));
    REQUIRE(file->add_group("/empty"));
    CHECK_FALSE(std::filesystem::exists(path));
    REQUIRE(file->commit());
  }
  const auto file = Hdf5Reader::open(path);
  REQUIRE(file);
  CHECK(file->children("/").value() ==
        std::vector<std::string>{"a", "empty", "nothing", "number", "scalar", "text"});
  CHECK(file->has("/a/b/matrix"));
  CHECK_FALSE(file->has("/a/x/matrix"));
  CHECK(file->is_dataset("a/b/matrix"));
  CHECK_FALSE(file->is_dataset("/a/b"));
  CHECK(file->dims("/a/b/matrix").value() == std::vector<std::int64_t>{2, 3});
  CHECK(file->dims("/scalar").value().empty());
  CHECK(file->read_floats("/a/b/matrix").value() == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(file->read_floats("/scalar").value() == std::vector<float>{7.5F});
  CHECK(file->read_integer("/number").value() == 42);
  CHECK(file->read_string("/text").value() == "hello");
  CHECK(file->read_string("/nothing").value().empty());
  std::vector<float> row(3);
  REQUIRE(file->read_rows("/a/b/matrix", 1, 1, row));
  CHECK(row == std::vector<float>{4, 5, 6});
}

TEST_CASE("HDF5: rows are appended") {
  const TempDir folder;
  {
    auto file = Hdf5Writer::create(folder / "f.h5");
    REQUIRE(file);
    const std::int64_t dims[] = {2};
    REQUIRE(file->add_rows("data", dims, std::vector<float>{1, 2, 3, 4}));
    REQUIRE(file->add_rows("data", dims, std::vector<float>{5, 6}));
    REQUIRE(file->add_rows("label", {}, std::vector<float>{7, 8, 9}));
    REQUIRE(file->commit());
  }
  const auto file = Hdf5Reader::open(folder / "f.h5");
  REQUIRE(file);
  CHECK(file->dims("data").value() == std::vector<std::int64_t>{3, 2});
  CHECK(file->read_floats("data").value() == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(file->dims("label").value() == std::vector<std::int64_t>{3});
}

TEST_CASE("HDF5: a writer that is not committed leaves nothing, and the old file stays") {
  const TempDir folder;
  write_bytes(folder / "f.h5", "old");
  {
    auto file = Hdf5Writer::create(folder / "f.h5");
    REQUIRE(file);
    REQUIRE(file->add_integers("/n", std::vector<int>{1}));
  }
  CHECK(read_bytes(folder / "f.h5") == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  check_error(Hdf5Writer::create(folder / "none" / "f.h5"), ErrorCode::kCannotWrite, "f.h5");
}

TEST_CASE("HDF5: of a file that is cut while it is open the rest is an error, not zeros") {
  const TempDir folder;
  const auto path = folder / "f.h5";
  constexpr std::int64_t kRows = 1000, kWidth = 500;
  {
    auto writer = Hdf5Writer::create(path);
    REQUIRE(writer);
    const std::int64_t dims[] = {kRows, kWidth};
    REQUIRE(writer->add_floats("data", dims, std::vector<float>(kRows * kWidth, 1.0F)));
    REQUIRE(writer->commit());
  }
  const auto file = Hdf5Reader::open(path);
  REQUIRE(file);
  std::vector<float> row(kWidth);
  REQUIRE(file->read_rows("data", 0, 1, row));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  check_error(file->read_rows("data", kRows - 1, 1, row), ErrorCode::kData, "f.h5");
}

TEST_CASE("HDF5: errors name file and dataset") {
  const TempDir folder;
  const auto path = folder / "f.h5";
  check_error(Hdf5Reader::open(path), ErrorCode::kNotFound, "f.h5");
  write_bytes(path, "");
  check_error(Hdf5Reader::open(path), ErrorCode::kData, "not a readable HDF5 file");
  {
    auto writer = Hdf5Writer::create(path);
    REQUIRE(writer);
    REQUIRE(writer->add_string("/text", "hello"));
    REQUIRE(writer->add_integers("/pair", std::vector<int>{1, 2}));
    REQUIRE(writer->commit());
  }
  const auto file = Hdf5Reader::open(path);
  REQUIRE(file);
  check_error(file->read_floats("/gone"), ErrorCode::kData, "'/gone' does not exist");
  check_error(file->read_floats("/text"), ErrorCode::kData, "neither floats nor integers");
  check_error(file->read_integer("/pair"), ErrorCode::kData, "not a single number");
  check_error(file->read_string("/pair"), ErrorCode::kData, "string");
  check_error(file->children("/text"), ErrorCode::kData, "group");
}

TEST_CASE("HDF5: several threads may use the library at once") {
  const TempDir folder;
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const auto path = folder / (std::to_string(thread) + ".h5");
      for (int round = 0; round < 10; ++round) {
        auto writer = Hdf5Writer::create(path);
        if (!writer || !writer->add_integers("/n", std::vector<int>{round}) || !writer->commit())
          return;
        const auto file = Hdf5Reader::open(path);
        if (!file) return;
        const auto value = file->read_integer("/n");
        if (value && *value == round) ++good[static_cast<std::size_t>(thread)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == std::vector<int>(4, 10));
}

}  // namespace
}  // namespace speedo
