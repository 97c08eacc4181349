// Nets of all generations and their weights.
#include <filesystem>

#include <speedo/base/assert.hpp>
#include <speedo/base/file.hpp>

#include "core/prototxt.hpp"
#include "core/weight_file.hpp"
#include "data/model_files.hpp"
#include "formats/safetensors_file.hpp"
#include "fuzz/seeds.hpp"
#include "support/temp_dir.hpp"

namespace speedo::fuzz {
namespace {

std::string golden_folder() { return std::string(SPEEDO_SOURCE_DIR) + "/tests/golden/data/"; }

std::string golden_file(const std::string& name) {
  return read_file(golden_folder() + name).value();
}

// The nets of the golden cases have each type of layer once.
void add_nets(std::vector<Seed>& seeds) {
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder() + "layers")) {
    const auto text = read_file(entry.path() / "net.prototxt");
    if (text) seeds.push_back({"prototxt", byte_text(0) + *text});
  }
  for (const char* name : {"v0_padding_testsimple", "v1_testsimple"}) {
    const std::string text = golden_file(std::string("upgrade/") + name + ".in.prototxt");
    seeds.push_back({"prototxt", byte_text(0) + text});
  }
  const std::string inception = golden_file("nets/inception_mini_test/net.prototxt");
  seeds.push_back({"prototxt", byte_text(0) + inception});
  seeds.push_back({"prototxt", byte_text(4) + golden_file("cli/solver.prototxt")});
  seeds.push_back({"prototxt", byte_text(4) + golden_file("upgrade/solver_sgd.in.prototxt")});
  for (const char* text :
       {"input: \"d\" input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4",
        "input: \"d\" input_dim: 1", "input: \"d\" input_shape { dim: 1 dim: 2 }",
        "input: \"a\" input: \"b\" input_shape { dim: 1 }", "base_lr: 1", "layer {", "\xFF\xFEl",
        "\xEF\xBB\xBF" "name: \"n\"", "name: \"n\xC3\xA9\" \xC3\xA9", "",
        "layer { name: \"d\" type: \"Input\" top: \"d\" input_param { shape { dim: 2 dim: 3 } } } "
        "layer { name: \"n\" type: \"BatchNorm\" bottom: \"d\" top: \"n\" param { lr_mult: 0 } "
        "param { lr_mult: 0 } param { lr_mult: 0 } }",
        "layers { name: \"d\" type: DATA top: \"d\" data_param { scale: 2 mean_file: \"m\" "
        "crop_size: 3 mirror: true } }",
        "layers { name: \"d\" type: IMAGE_DATA top: \"d\" image_data_param { scale: 2 mean_file: "
        "\"m\" crop_size: 3 mirror: true } }",
        "layers { name: \"d\" type: WINDOW_DATA top: \"d\" window_data_param { scale: 2 mean_file: "
        "\"m\" crop_size: 3 mirror: true } }",
        "layers { layer { name: \"d\" type: \"relu\" } } layer { name: \"e\" type: \"ReLU\" }",
        "layers { layer { name: \"d\" type: \"images\" source: \"s\" new_height: 3 new_width: 4 "
        "shuffle_images: true batchsize: 2 meanfile: \"m\" pad: 1 } }",
        "layers { layer { name: \"c\" type: \"conv\" biasterm: true num_output: 2 kernelsize: 3 "
        "pad: 1 stride: 2 group: 1 weight_filler { type: \"xavier\" } pool: AVE } }",
        "layers { name: \"r\" type: RELU layer { name: \"r\" type: \"relu\" } }"}) {
    seeds.push_back({"prototxt", byte_text(0) + text});
  }
  for (const char* type : {"SGD", "NESTEROV", "ADAGRAD", "RMSPROP", "ADADELTA", "ADAM"}) {
    seeds.push_back({"prototxt", byte_text(4) + "solver_type: " + type});
  }
  for (const char* text : {"solver_type: SGD type: \"SGD\"", "snapshot_prefix: \"/tmp\"",
                           "layer { name: \"d\" type: \"Silence\" }",
                           "train_net_param { name: \"n\" } test_net_param { name: \"n\" }"}) {
    seeds.push_back({"prototxt", byte_text(4) + text});
  }
  seeds.push_back({"prototxt", byte_text(4) + "base_lr: 1 net_param { name: \"n\" layer { name: "
                               "\"d\" type: \"DummyData\" top: \"d\" dummy_data_param { shape { "
                               "dim: 2 dim: 3 } } } }"});
}

void add_weights(std::vector<Seed>& seeds) {
  for (const char* name : {"upgrade/v1_legacy_blobs.caffemodel", "cli/cli_iter_20.caffemodel"}) {
    for (const unsigned which : {2, 3}) {
      seeds.push_back({"caffemodel", byte_text(which) + golden_file(name)});
    }
  }
  seeds.push_back({"caffemodel", byte_text(0) + golden_file("cli/cli_iter_20.solverstate")});
  caffe::SolverState negative;
  negative.set_iter(-1);
  for (const std::string& bytes : {negative.SerializeAsString(), std::string("\xff"),
                                   std::string(), caffe::SolverState().SerializeAsString()}) {
    for (const unsigned which : {0, 1, 2}) {
      seeds.push_back({"caffemodel", byte_text(which) + bytes});
    }
  }
  caffe::NetParameter v0;
  const std::string text = golden_file("upgrade/v0_padding_testsimple.in.prototxt");
  SPEEDO_ASSERT(parse_prototxt(text, "v0", v0));
  seeds.push_back({"caffemodel", byte_text(3) + v0.SerializeAsString()});
  caffe::BlobProto mean;
  mean.set_num(1);
  mean.set_channels(1);
  mean.set_height(2);
  mean.set_width(2);
  for (int i = 0; i < 4; ++i) mean.add_data(static_cast<float>(i));
  seeds.push_back({"caffemodel", byte_text(1) + mean.SerializeAsString()});
}

void add_safetensors(std::vector<Seed>& seeds) {
  const TempDir folder;
  const auto model = read_caffemodel(golden_folder() + "cli/cli_iter_20.caffemodel");
  SPEEDO_ASSERT(model);
  SPEEDO_ASSERT(write_safetensors(folder / "w", *model, {{"format", "pt"}}));
  seeds.push_back({"safetensors", read_file(folder / "w").value()});
  seeds.push_back({"safetensors", byte_text(14) + byte_text(0) +
                                      R"({"a":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},)"
                                      R"("b":{"dtype":"F64","shape":[],"data_offsets":[6,14]}})"});
}

// What our own writers make of a model, a state and a mean, in both formats.
void add_written_weights(std::vector<Seed>& seeds) {
  const TempDir folder;
  auto model = read_caffemodel(golden_folder() + "cli/cli_iter_20.caffemodel").value();
  const auto state = read_solverstate(golden_folder() + "cli/cli_iter_20.solverstate").value();
  for (caffe::BlobProto& blob : *model.mutable_layer(model.layer_size() - 1)->mutable_blobs()) {
    *blob.mutable_diff() = blob.data();
  }
  for (const auto format : {caffe::SolverParameter::HDF5, caffe::SolverParameter::BINARYPROTO}) {
    SPEEDO_ASSERT(write_model(folder / "m", model, format));
    SPEEDO_ASSERT(write_solver_state(folder / "s", state, format));
    const bool is_hdf5 = format == caffe::SolverParameter::HDF5;
    const char* const target = is_hdf5 ? "hdf5" : "caffemodel";
    const std::string model_head = is_hdf5 ? "" : byte_text(2);
    const std::string state_head = is_hdf5 ? "" : byte_text(0);
    seeds.push_back({target, model_head + read_file(folder / "m").value()});
    seeds.push_back({target, state_head + read_file(folder / "s").value()});
  }
  for (const caffe::LayerParameter& layer : model.layer()) {
    if (layer.blobs_size() == 0) continue;
    SPEEDO_ASSERT(write_blob_file(folder / "b", layer.blobs(0)));
    seeds.push_back({"caffemodel", byte_text(1) + read_file(folder / "b").value()});
  }
}

}  // namespace

std::vector<Seed> model_seeds() {
  std::vector<Seed> seeds;
  add_nets(seeds);
  add_weights(seeds);
  add_safetensors(seeds);
  seeds.push_back({"hdf5", golden_file("upgrade/v1_legacy_blobs.h5")});
  add_written_weights(seeds);
  return seeds;
}

}  // namespace speedo::fuzz
