// HDF5 files read in processes of their own: the same as here.

#include <algorithm>
#include <csignal>
#include <cstring>

#include <hdf5.h>
#include <speedo/base/random.hpp>

#include "data/hdf5/hdf5_file.hpp"
#include "data/model_files.hpp"
#include "parser_support.hpp"
#include "support/child_processes.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

void write_file(const std::filesystem::path& path) {
  auto file = Hdf5Writer::create(path);
  REQUIRE(file);
  const std::int64_t dims[] = {50, 3}, row_dims[] = {4};
  std::vector<float> values;
  for (int i = 0; i < 150; ++i) values.push_back(0.5F * static_cast<float>(i));
  REQUIRE(file->add_floats("/a/b/matrix", dims, values));
  REQUIRE(file->add_rows("/rows", row_dims, std::vector<float>(400, 2.5F)));
  REQUIRE(file->add_floats("/scalar", {}, std::vector<float>{7.5F}));
  REQUIRE(file->add_integers("/number", std::vector<int>{42}));
  REQUIRE(file->add_string("/text", "hello"));
  REQUIRE(file->add_group("/data/ip/inner"));
  REQUIRE(file->add_floats("/data/ip/0", dims, values));
  REQUIRE(file->commit());
}

// A string of variable length, as others write them.
void add_more(const std::filesystem::path& path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t one = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, H5T_VARIABLE);
  const hid_t data = H5Dcreate2(file, "/units", text, one, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const char* const value = "metre";
  CHECK(H5Dwrite(data, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
  H5Dclose(data);
  H5Tclose(text);
  H5Sclose(one);
  H5Fclose(file);
}

template <class T>
std::string shown(const Result<T>& result, const std::string& value) {
  return result ? value + ";" : result.error().message + ";";
}

// All that a reader says of a file, as one text.
std::string told_of(const std::filesystem::path& path) {
  const auto file = Hdf5Reader::open(path);
  if (!file) return file.error().message;
  std::string told;
  for (const char* object : {"/", "/a/b/matrix", "a/b", "/rows", "/scalar", "/number", "/text",
                             "/units", "/gone", "/data/ip", ""}) {
    told += std::string(object) + (file->has(object) ? " is" : " is not");
    told += file->is_dataset(object) ? " data;" : " no data;";
    const auto names = file->children(object);
    std::string all;
    for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
      all += name + ",";
    }
    told += shown(names, all);
    const auto dims = file->dims(object);
    std::string extents;
    for (const std::int64_t extent : dims.has_value() ? *dims : std::vector<std::int64_t>()) {
      extents += std::to_string(extent) + ",";
    }
    told += shown(dims, extents);
    const auto floats = file->read_floats(object);
    std::string values;
    if (floats) {
      values = std::to_string(floats->size()) + ":";
      for (std::size_t i = 0; i < std::min<std::size_t>(floats->size(), 200); ++i) {
        values += std::to_string((*floats)[i]) + ",";
      }
    }
    told += shown(floats, values);
    const auto number = file->read_integer(object);
    told += shown(number, number ? std::to_string(*number) : "");
    const auto text = file->read_string(object);
    told += shown(text, text ? *text : "");
  }
  const auto status = file->status();
  return told + shown(status, "");
}

TEST_CASE("parsers: HDF5 files tell the same") {
  const TempDir folder;
  write_file(folder / "f.h5");
  add_more(folder / "f.h5");
  write_bytes(folder / "none.h5", "no HDF5");
  std::filesystem::create_directory(folder / "folder.h5");
  for (const char* name : {"f.h5", "none.h5", "gone.h5", "folder.h5"}) {
    INFO(name);
    const std::string here = told_of(folder / name);
    if (std::string(name) == "f.h5") CHECK(here.find("metre;") != std::string::npos);
    const ParserProcesses parsers(parser_options());
    CHECK(told_of(folder / name) == here);
    CHECK(parsers.totals().died == 0);
  }
}

TEST_CASE("parsers: a model in HDF5 is the same, and a large one comes in pieces") {
  const TempDir folder;
  caffe::NetParameter net;
  caffe::LayerParameter& layer = *net.add_layer();
  layer.set_name("ip");
  caffe::BlobProto& blob = *layer.add_blobs();
  // 40 MB, of which 16 fit at a time.
  for (const int extent : {1000, 10000}) blob.mutable_shape()->add_dim(extent);
  for (int i = 0; i < 10000000; ++i) blob.add_data(static_cast<float>(i % 1013));
  const auto path = folder / "m.caffemodel.h5";
  REQUIRE(write_model(path, net, caffe::SolverParameter::HDF5));
  const ParserProcesses parsers(parser_options(kParserMiBMin));
  const auto read = read_model(path);
  REQUIRE(read);
  REQUIRE(read->layer_size() == 1);
  const auto& values = read->layer(0).blobs(0).data();
  REQUIRE(values.size() == blob.data_size());
  CHECK(std::memcmp(values.data(), blob.data().data(),
                    4 * static_cast<std::size_t>(values.size())) == 0);
  CHECK(parsers.totals().died == 0);
}

TEST_CASE("parsers: an open HDF5 file is opened again by another process if one dies") {
  const TempDir folder;
  write_file(folder / "f.h5");
  const ParserProcesses parsers(parser_options());
  const auto file = Hdf5Reader::open(folder / "f.h5");
  REQUIRE(file);
  for (int i = 0; i < 3; ++i) {
    for (const pid_t child : test::children_of(::getpid(), "speedo-parser")) ::kill(child, SIGKILL);
    std::vector<float> row(3);
    REQUIRE(file->read_rows("/a/b/matrix", 7, 1, row));
    CHECK(row == std::vector<float>{10.5F, 11.0F, 11.5F});
  }
  CHECK(parsers.totals().died == 3);
}

TEST_CASE("parsers: damaged HDF5 files end no more than parsers") {
  const TempDir folder;
  write_file(folder / "f.h5");
  const std::string whole = read_bytes(folder / "f.h5");
  Random random(test::fresh_seed());
  ParserOptions options = parser_options();
  options.patience = std::chrono::seconds(5);  // some make the library go round and round
  const ParserProcesses parsers(options);
  for (int i = 0; i < 60; ++i) {
    std::string changed = whole;
    for (int change = 0; change < 8; ++change) {
      changed[static_cast<std::size_t>(random.below(changed.size()))] =
          static_cast<char>(random.below(256));
    }
    write_bytes(folder / "d.h5", changed);
    told_of(folder / "d.h5");
    static_cast<void>(read_model(folder / "d.h5"));
  }
  // It goes on.
  CHECK(told_of(folder / "f.h5").find("74.500000,") != std::string::npos);
}

}  // namespace
}  // namespace speedo
