// What --deterministic says: the result depends on seed and number of workers, on nothing else.

#include <cstdlib>

#include <speedo/base/random.hpp>
#include <speedo/cpu/cpu_options.hpp>

#include "main/command_support.hpp"

namespace speedo::test {
namespace {

using Words = std::vector<std::string>;

constexpr int kRecords = 96;
constexpr int kRecordBytes = 1 + 3 * 32 * 32;  // CIFAR-10's format

// One layer of each kind whose sums could be divided in another way.
constexpr const char* kNet = R"(name: "bits"
  layer { name: "data" type: "Data" top: "data" top: "label"
          data_param { source: "data.bin" batch_size: 12 }
          transform_param { scale: 0.0039 crop_size: 20 mirror: true } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
          convolution_param { num_output: 16 kernel_size: 5 pad: 2
                              weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "LRN" bottom: "conv1" top: "norm" }
  layer { name: "pool1" type: "Pooling" bottom: "norm" top: "pool1"
          pooling_param { kernel_size: 3 stride: 2 } }
  layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
          convolution_param { num_output: 32 kernel_size: 3 group: 2
                              weight_filler { type: "msra" } } }
  layer { name: "bn" type: "BatchNorm" bottom: "conv2" top: "bn" }
  layer { name: "scale" type: "Scale" bottom: "bn" top: "bn" scale_param { bias_term: true } }
  layer { name: "prelu" type: "PReLU" bottom: "bn" top: "bn" }
  layer { name: "pool2" type: "Pooling" bottom: "bn" top: "pool2"
          pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
  layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
          inner_product_param { num_output: 64 weight_filler { type: "xavier" } } }
  layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
  layer { name: "tanh" type: "TanH" bottom: "ip1" top: "ip1" }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
          inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" })";

class Job {
 public:
  Job() {
    Random random(7);
    std::string data;
    for (int record = 0; record < kRecords; ++record) {
      data.push_back(static_cast<char>(random.below(10)));
      for (int i = 1; i < kRecordBytes; ++i) data.push_back(static_cast<char>(random.below(256)));
    }
    place_.write("data.bin", data);
    place_.write("net.prototxt", kNet);
    place_.write("solver.prototxt",
                 "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" momentum: 0.9 "
                 "weight_decay: 0.001 random_seed: 5 display: 0 max_iter: 12 clip_gradients: 5 "
                 "snapshot_prefix: \"" + place_.file("snap") + "\"");
  }

  // The bytes of the model that training with these flags ends in.
  std::string model(const Words& rule, const Words& flags) {
    Words command{"speedo", "run", "--solver", place_.file("solver.prototxt"), "--sync",
                  "--deterministic"};
    command.insert(command.end(), rule.begin(), rule.end());
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome outcome = place_.run(command);
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
    std::string bytes = place_.read("snap_iter_12.caffemodel");
    REQUIRE_FALSE(bytes.empty());
    return bytes;
  }

 private:
  Context place_;
};

}  // namespace

TEST_CASE("A deterministic result depends on neither threads nor instruction set") {
  Job job;
  const std::string all = std::to_string(default_threads());
  for (const Words& rule : {Words{"--gradient-only", "--workers", "1"},
                            Words{"--train", "2", "--save-updater", "average", "--workers", "2"}}) {
    const bool alone = rule.back() == "1";
    const std::string expected = job.model(rule, {});
    if (alone) CHECK((job.model(rule, {"--threads", "1"}) == expected));
    if (alone) CHECK((job.model(rule, {"--threads", all, "--cpu-isa", "portable"}) == expected));
    if (!alone) CHECK((job.model(rule, {"--cpu-isa", "portable"}) == expected));
    ::setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    const std::string with_other_core = job.model(rule, {});
    ::unsetenv("OPENBLAS_CORETYPE");
    CHECK((with_other_core == expected));
  }
}

TEST_CASE("Numbers that not every machine has contradict a deterministic result") {
  Context place;
  const Outcome refused = place.run({"speedo", "run", "--solver", place.write_solver(), "--sync",
                                    "--gradient-only", "--deterministic", "--precision", "bf16"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_line().find("--deterministic") != std::string::npos);
}

}  // namespace speedo::test
