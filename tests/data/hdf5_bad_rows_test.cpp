#include <array>
#include <numeric>

#include <hdf5.h>

#include "data/feed_factory.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/hdf5/hdf5_handle.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kChunkRows = 2;

// Rows with the label first, first + 1, ...
void write_good(const std::filesystem::path& path, std::int64_t rows, float first) {
  auto file = Hdf5Writer::create(path);
  REQUIRE(file);
  std::vector<float> values(static_cast<std::size_t>(rows));
  std::iota(values.begin(), values.end(), first);
  REQUIRE(file->add_floats("label", std::span(&rows, 1), values));
  REQUIRE(file->commit());
}

// The same in chunks of two rows with checksums; where the chunk of `row` lies.
std::size_t write_with_checksums(const std::filesystem::path& path, hsize_t rows, float first,
                                 hsize_t row) {
  const Hdf5Lock lock;
  const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  const Hdf5Handle space(H5Screate_simple(1, &rows, nullptr), H5Sclose);
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const hsize_t chunk = kChunkRows;
  REQUIRE(H5Pset_chunk(creation.get(), 1, &chunk) >= 0);
  REQUIRE(H5Pset_fletcher32(creation.get()) >= 0);
  const Hdf5Handle data(H5Dcreate2(file.get(), "label", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT,
                                   creation.get(), H5P_DEFAULT),
                        H5Dclose);
  std::vector<float> values(rows);
  std::iota(values.begin(), values.end(), first);
  REQUIRE(H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >=
          0);
  REQUIRE(H5Dflush(data.get()) >= 0);
  unsigned filters = 0;
  haddr_t place = 0;
  hsize_t bytes = 0;
  REQUIRE(H5Dget_chunk_info_by_coord(data.get(), &row, &filters, &place, &bytes) >= 0);
  return place;
}

void damage(const std::filesystem::path& path, std::size_t place) {
  std::string bytes = read_bytes(path);
  REQUIRE(place < bytes.size());
  bytes[place] = static_cast<char>(bytes[place] ^ 1);
  write_bytes(path, bytes);
}

struct Opened {
  std::unique_ptr<FeedFactory> factory;
  Result<std::unique_ptr<BatchFeed>> feed;
  std::uint64_t skipped() const { return factory->totals().skipped_records; }
};

Opened open_list(const TempDir& folder, const std::string& list, OnBadRecord policy,
                 const std::string& more = "") {
  write_bytes(folder / "list", list);
  auto factory = make_feed_factory(1, policy);
  auto feed = factory->open(
      layer_from("type: 'HDF5Data' top: 'label' hdf5_data_param { source: 'list' batch_size: 4 " +
                 more + " }"),
      {.base = folder.path(), .top_count = 1});
  return {std::move(factory), std::move(feed)};
}

std::vector<float> labels_of(const Opened& opened, std::uint64_t batches) {
  std::vector<float> labels;
  for (std::uint64_t batch = 0; batch < batches; ++batch) {
    const auto tops = opened.feed.value()->read(batch);
    REQUIRE(tops);
    labels.insert(labels.end(), (*tops)[0].begin(), (*tops)[0].end());
  }
  return labels;
}

TEST_CASE("HDF5 files that cannot be read are left out if asked for, and counted") {
  const TempDir folder;
  write_good(folder / "a.h5", 3, 0);
  write_good(folder / "b.h5", 2, 3);
  write_bytes(folder / "bad.h5", "no HDF5 at all");
  const std::int64_t square[] = {2, 2};
  auto odd = Hdf5Writer::create(folder / "odd.h5");
  REQUIRE(odd);
  REQUIRE(odd->add_floats("label", square, std::array<float, 4>{}));
  REQUIRE(odd->commit());
  const std::string list = "bad.h5 a.h5 gone.h5 odd.h5 b.h5";
  check_error(open_list(folder, list, OnBadRecord::kAbort).feed, ErrorCode::kData, "bad.h5");
  check_error(open_list(folder, "a.h5 odd.h5", OnBadRecord::kAbort).feed, ErrorCode::kData,
              "odd.h5");
  const Opened skipping = open_list(folder, list, OnBadRecord::kSkip);
  REQUIRE(skipping.feed);
  CHECK((*skipping.feed)->record_count() == 5);
  CHECK(labels_of(skipping, 2) == std::vector<float>{0, 1, 2, 3, 4, 0, 1, 2});
  CHECK(skipping.skipped() == 3);
  check_error(open_list(folder, "gone.h5 bad.h5", OnBadRecord::kSkip).feed, ErrorCode::kData,
              "none of the 2 files");
  check_error(open_list(folder, " ", OnBadRecord::kSkip).feed, ErrorCode::kData, "names no file");
}

TEST_CASE("rows of a damaged chunk are left out if asked for, the next ones in their place") {
  const TempDir folder;
  write_good(folder / "a.h5", 1, 0);
  damage(folder / "c.h5", write_with_checksums(folder / "c.h5", 6, 1, 3));
  const std::string list = "a.h5 c.h5";
  const Opened aborting = open_list(folder, list, OnBadRecord::kAbort);
  REQUIRE(aborting.feed);
  check_error((*aborting.feed)->read(0), ErrorCode::kData, "c.h5");
  const Opened skipping = open_list(folder, list, OnBadRecord::kSkip);
  REQUIRE(skipping.feed);
  CHECK((*skipping.feed)->record_count() == 7);
  // Rows 3 and 4 of the stream are bad.
  CHECK(labels_of(skipping, 3) == std::vector<float>{0, 1, 2, 5, 5, 5, 6, 0, 1, 2, 5, 5});
  CHECK(skipping.skipped() == 2);
  const Opened shuffled = open_list(folder, list, OnBadRecord::kSkip, "shuffle: true");
  const Opened again = open_list(folder, list, OnBadRecord::kSkip, "shuffle: true");
  const std::vector<float> labels = labels_of(shuffled, 14);
  CHECK(labels == labels_of(again, 14));
  CHECK(std::count(labels.begin(), labels.end(), 3.0F) == 0);
  CHECK(std::count(labels.begin(), labels.end(), 4.0F) == 0);
  CHECK(shuffled.skipped() == 2);
}

TEST_CASE("where every row is bad the last one's error is told, whatever the policy") {
  const TempDir folder;
  damage(folder / "c.h5", write_with_checksums(folder / "c.h5", 2, 0, 0));
  const Opened skipping = open_list(folder, "c.h5", OnBadRecord::kSkip);
  REQUIRE(skipping.feed);
  check_error((*skipping.feed)->read(0), ErrorCode::kData, "c.h5");
}

}  // namespace
}  // namespace speedo
