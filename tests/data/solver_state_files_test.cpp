// State files of every solver type as somebody else reads them: with protobuf and Caffe's message,
// and with the HDF5 library alone.

#include <hdf5.h>

#include <fstream>
#include <iterator>

#include <speedo/core/update_rule.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "core/prototxt.hpp"
#include "data/model_files.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

constexpr const char* kFields[] = {
    "type: \"SGD\" momentum: 0.9",      "type: \"Nesterov\" momentum: 0.9",
    "type: \"AdaGrad\"",                "type: \"RMSProp\" rms_decay: 0.9",
    "type: \"AdaDelta\" momentum: 0.9", "type: \"Adam\" momentum: 0.9",
};

ParameterLayout two_parameters() {
  ParameterLayout layout;
  layout.add({.layer = "ip", .index = 0, .name = "", .shape = {3, 5}});
  layout.add({.layer = "ip", .index = 1, .name = "", .shape = {3}});
  return layout;
}

// A rule after some updates, its state, and the histories that it holds, block after block, each
// in the order of the parameters.
struct Trained {
  explicit Trained(const char* fields) : layout(two_parameters()) {
    const auto solver = parse_solver_prototxt(
        std::string(fields) + " base_lr: 0.01 lr_policy: \"step\" stepsize: 2 gamma: 0.5", "s");
    REQUIRE(solver);
    const auto backend = make_cpu_backend(1);
    const auto rule = UpdateRule::create(*solver, layout, *backend);
    REQUIRE(rule);
    std::vector<float> weights(static_cast<std::size_t>(layout.element_count()), 0.5F);
    for (int iteration = 0; iteration < 5; ++iteration) {
      std::vector<float> gradients(weights.size());
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        gradients[i] = static_cast<float>(i % 7) - 3.0F + static_cast<float>(iteration);
      }
      (*rule)->update(iteration, weights.data(), gradients.data());
    }
    (*rule)->save(state, 5);
    state.set_learned_net("snap_iter_5.caffemodel");
    for (const Arena* history : (*rule)->histories()) {
      for (const ParameterSlot& slot : layout.slots()) {
        const float* const first = history->data() + slot.offset;
        histories.emplace_back(first, first + slot.count());
      }
    }
  }

  ParameterLayout layout;
  caffe::SolverState state;
  std::vector<std::vector<float>> histories;
};

class Hdf5Dataset {
 public:
  Hdf5Dataset(hid_t file, const std::string& path)
      : id_(H5Dopen2(file, path.c_str(), H5P_DEFAULT)) {
    INFO(path);
    REQUIRE(id_ >= 0);
  }
  ~Hdf5Dataset() { H5Dclose(id_); }
  Hdf5Dataset(const Hdf5Dataset&) = delete;
  Hdf5Dataset& operator=(const Hdf5Dataset&) = delete;

  std::vector<hsize_t> dims() const {
    const hid_t space = H5Dget_space(id_);
    std::vector<hsize_t> dims(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, dims.data(), nullptr);
    H5Sclose(space);
    return dims;
  }
  std::vector<float> floats(std::size_t count) const {
    std::vector<float> values(count);
    REQUIRE(H5Dread(id_, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    return values;
  }
  int integer() const {
    int value = -1;
    REQUIRE(H5Dread(id_, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
    return value;
  }

 private:
  hid_t id_;
};

TEST_CASE("binary solver states hold Caffe's message, every block of histories in order") {
  const TempDir folder;
  for (const char* fields : kFields) {
    INFO(fields);
    const Trained trained(fields);
    REQUIRE(write_solver_state(folder / "s", trained.state, caffe::SolverParameter::BINARYPROTO));
    std::ifstream stream(folder / "s", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    caffe::SolverState read;
    REQUIRE(read.ParseFromString(bytes));
    CHECK(read.unknown_fields().empty());
    CHECK(read.iter() == 5);
    CHECK(read.current_step() == 2);
    CHECK(read.learned_net() == "snap_iter_5.caffemodel");
    REQUIRE(static_cast<std::size_t>(read.history_size()) == trained.histories.size());
    for (std::size_t i = 0; i < trained.histories.size(); ++i) {
      const caffe::BlobProto& blob = read.history(static_cast<int>(i));
      CHECK(std::vector<float>(blob.data().begin(), blob.data().end()) == trained.histories[i]);
      CHECK(blob.shape().dim_size() == (i % 2 == 0 ? 2 : 1));
      CHECK(blob.shape().dim(0) == 3);
    }
  }
}

TEST_CASE("HDF5 solver states are read by the library alone, every block of histories in order") {
  const TempDir folder;
  for (const char* fields : kFields) {
    INFO(fields);
    const Trained trained(fields);
    const std::string path = (folder / "s.h5").string();
    REQUIRE(write_solver_state(path, trained.state, caffe::SolverParameter::HDF5));
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    REQUIRE(file >= 0);
    CHECK(Hdf5Dataset(file, "/iter").integer() == 5);
    CHECK(Hdf5Dataset(file, "/current_step").integer() == 2);
    H5G_info_t group{};
    REQUIRE(H5Gget_info_by_name(file, "/history", &group, H5P_DEFAULT) >= 0);
    REQUIRE(group.nlinks == trained.histories.size());
    for (std::size_t i = 0; i < trained.histories.size(); ++i) {
      const Hdf5Dataset history(file, "/history/" + std::to_string(i));
      CHECK(history.floats(trained.histories[i].size()) == trained.histories[i]);
      const std::vector<hsize_t> matrix{3, 5}, vector{3};
      CHECK(history.dims() == (i % 2 == 0 ? matrix : vector));
    }
    H5Fclose(file);
  }
}

}  // namespace
}  // namespace speedo
