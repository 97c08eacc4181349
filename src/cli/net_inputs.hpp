#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

#include "cli/options/option_values.hpp"

namespace caffe {
class SolverParameter;
}

namespace speedo {

// Which layers belong to a net, by Caffe's rules.
struct StateFlags {
  std::string stage;
  std::int32_t level = 0;
};

// What the commands that work on one net (`test`, `time`, `net`) have in common.
struct NetFlags : StateFlags {
  std::string model, weights;
};

StateFlags state_flags(const OptionValues& values);
NetFlags net_flags(const OptionValues& values);

// The train net's state, as Caffe's flags set it.
void apply(const StateFlags& flags, caffe::SolverParameter& solver);

// Copies weights (read_weights) into `net`. Errors: those of reading; kMismatch if they are of none
// of its layers.
Result<void> load_weights(const std::string& files, Net& net);

// Builds the net of a prototxt in `phase`, and copies the weights if there are any, which must be
// of one of its layers at least.
// `options` brings backend, feeds and seed. Errors: kConfig (also for a missing file), kData,
// kMismatch.
Result<std::unique_ptr<Net>> build_net(const NetFlags& flags, Phase phase, NetOptions options);

// "TRAIN" or "TEST", in any case; empty means `otherwise`. Error: kUsage.
Result<Phase> parse_phase(const std::string& text, Phase otherwise);

// The first axis of what the first layer reads: images per forward pass. 0 if the net reads
// nothing.
std::int64_t images_per_pass(const Net& net);

// Without the blanks around each, and without those that are empty.
std::vector<std::string> split_at_commas(const std::string& text);
std::vector<std::string> split_at_blanks(const std::string& text);

}  // namespace speedo
