// Nets of all generations and their weights.
#include <filesystem>

#include <speedo/base/assert.hpp>
#include <speedo/base/file.hpp>

#include "core/prototxt.hpp"
#include "core/weight_file.hpp"
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

}  // namespace

std::vector<Seed> model_seeds() {
  std::vector<Seed> seeds;
  add_nets(seeds);
  add_weights(seeds);
  add_safetensors(seeds);
  for (const char* name : {"upgrade/v1_legacy_blobs.h5"}) {
    seeds.push_back({"hdf5", golden_file(name)});
  }
  return seeds;
}

}  // namespace speedo::fuzz
