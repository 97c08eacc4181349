// Files that real Caffe wrote: the data layers' batches, the mean, weights and solver states in
// both formats. A small set lies in the repository; the larger one, where it is there, has more
// nets.

#include <speedo/base/folder.hpp>

#include "core/prototxt.hpp"
#include "core/weight_file.hpp"
#include "data/feed_factory.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/image/mean.hpp"
#include "data/model_files.hpp"
#include "data/open_source.hpp"
#include "data_support.hpp"
#include "support/shared_fixtures.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

// The tests run in the project's root. The first set is the golden runner's, too.
const fs::path kGolden = "tests/golden/data";
const fs::path kCaffe = "tests/data/caffe";

void check_batches(const fs::path& datasets, const std::string& name, Phase phase, int threads) {
  INFO(name << ", " << threads << " threads");
  const auto net = read_net_prototxt(datasets / "expected" / (name + ".prototxt"));
  REQUIRE(net);
  const caffe::LayerParameter& layer = net->layer(0);
  FeedOptions options;
  options.phase = phase;
  options.base = datasets;
  options.top_count = layer.top_size();
  const auto feed = make_feed_factory(threads)->open(layer, options);
  if (!feed) INFO(feed.error().message);
  REQUIRE(feed);
  const auto expected = Hdf5Reader::open(datasets / "expected" / (name + ".h5"));
  REQUIRE(expected);
  const auto batches = expected->children("/batch");
  REQUIRE(batches);
  for (std::size_t batch = 0; batch < batches->size(); ++batch) {
    const auto tops = (*feed)->read(batch);
    REQUIRE(tops);
    for (int top = 0; top < layer.top_size(); ++top) {
      const std::string path = "/batch/" + std::to_string(batch) + "/" + layer.top(top);
      INFO(path);
      CHECK((*feed)->shapes()[static_cast<std::size_t>(top)].dims() ==
            expected->dims(path).value());
      const auto& values = (*tops)[static_cast<std::size_t>(top)];
      CHECK(std::vector<float>(values.begin(), values.end()) ==
            expected->read_floats(path).value());
    }
  }
}

TEST_CASE("golden: data layers give Caffe's batches, bit for bit") {
  const int threads = GENERATE(1, 2, 5);
  for (const char* name : {"lmdb_gray", "lmdb_float", "hdf5_two_files"}) {
    check_batches(kGolden / "datasets", name, Phase::kTrain, threads);
  }
  for (const char* name : {"lmdb_plain", "lmdb_encoded", "lmdb_mean_file_scale"}) {
    check_batches(kCaffe, name, Phase::kTrain, threads);
  }
  for (const char* name :
       {"lmdb_mean_file_crop_test", "lmdb_mean_value1_crop8_test", "lmdb_mean_value3_crop_test"}) {
    check_batches(kCaffe, name, Phase::kTest, threads);
  }
}

TEST_CASE("golden: the fork's datumfiles hold the same records as the LMDBs") {
  for (const auto& [file, lmdb] : {std::pair("color.datumfile", "color_lmdb"),
                                   std::pair("encoded_png.datumfile", "encoded_png_lmdb")}) {
    const auto one = open_source((kCaffe / file).string(), {});
    const auto two = open_source((kCaffe / lmdb).string(), {});
    REQUIRE(one);
    REQUIRE(two);
    REQUIRE((*one)->size() == 16);
    REQUIRE((*two)->size() == 16);
    Record first, second;
    for (std::int64_t index = 0; index < 16; ++index) {
      REQUIRE((*one)->read(index, first));
      REQUIRE((*two)->read(index, second));
      CHECK(first.bytes == second.bytes);
      CHECK(first.label == second.label);
    }
  }
}

TEST_CASE("golden: the mean is Caffe's, byte for byte") {
  const auto source = open_source((kCaffe / "color_lmdb").string(), {});
  REQUIRE(source);
  const auto mean = compute_mean(**source);
  REQUIRE(mean);
  CHECK(mean->SerializeAsString() == read_bytes(kCaffe / "mean.binaryproto"));
}

// Every dataset and group of `a` is in `b` with the same shape and values, and nothing else is.
void check_same_tree(const Hdf5Reader& a, const Hdf5Reader& b, const std::string& group) {
  const auto names = a.children(group);
  REQUIRE(names);
  REQUIRE(b.children(group).value() == *names);
  for (const std::string& name : *names) {
    const std::string path = group == "/" ? group + name : group + "/" + name;
    INFO(path);
    REQUIRE(a.is_dataset(path) == b.is_dataset(path));
    if (!a.is_dataset(path)) {
      check_same_tree(a, b, path);
    } else if (const auto text = a.read_string(path)) {
      CHECK(b.read_string(path).value() == *text);
    } else {
      CHECK(a.dims(path).value() == b.dims(path).value());
      CHECK(a.read_floats(path).value() == b.read_floats(path).value());
    }
  }
}

// Every folder with a net that Caffe trained.
std::vector<fs::path> net_folders() {
  std::vector<fs::path> folders = {kGolden / "nets" / "inception_mini_test"};
  if (const auto shared = test::shared_fixtures("golden/nets")) {
    const auto more = list_folder(*shared);
    REQUIRE(more);
    folders.insert(folders.end(), more->begin(), more->end());
  }
  return folders;
}

TEST_CASE("golden: weights in HDF5 are Caffe's, both ways") {
  const TempDir folder;
  for (const fs::path& net : net_folders()) {
    INFO(net);
    const auto binary = read_model(net / "weights.caffemodel");
    const auto hdf5 = read_model(net / "weights.h5");
    REQUIRE(binary);
    REQUIRE(hdf5);
    REQUIRE(write_model(folder / "w.h5", *binary, caffe::SolverParameter::HDF5));
    const auto ours = Hdf5Reader::open(folder / "w.h5");
    const auto theirs = Hdf5Reader::open(net / "weights.h5");
    REQUIRE(ours);
    REQUIRE(theirs);
    check_same_tree(*theirs, *ours, "/");
    for (const caffe::LayerParameter& layer : hdf5->layer()) {
      for (const caffe::LayerParameter& same : binary->layer()) {
        if (same.name() != layer.name()) continue;
        for (int i = 0; i < layer.blobs_size(); ++i) {
          CHECK(layer.blobs(i).SerializeAsString() == same.blobs(i).SerializeAsString());
        }
      }
    }
  }
}

TEST_CASE("golden: solver states in HDF5 are Caffe's, both ways") {
  const TempDir folder;
  for (const fs::path& where :
       {kGolden / "solvers" / "sgd_hdf5_snapshot", kCaffe / "adam_hdf5_snapshot"}) {
    const fs::path file = where / "snap_iter_10.solverstate.h5";
    INFO(file);
    const auto state = read_solver_state(file);
    REQUIRE(state);
    CHECK(state->iter() == 10);
    CHECK(state->history_size() > 0);
    REQUIRE(write_solver_state(folder / "s.h5", *state, caffe::SolverParameter::HDF5));
    const auto ours = Hdf5Reader::open(folder / "s.h5");
    const auto theirs = Hdf5Reader::open(file);
    REQUIRE(ours);
    REQUIRE(theirs);
    check_same_tree(*theirs, *ours, "/");
  }
}

}  // namespace
}  // namespace speedo
