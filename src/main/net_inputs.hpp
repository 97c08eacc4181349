#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

namespace CLI {
class App;
}

namespace speedo {

// What the commands that work on one net (`test`, `time`, `net`) have in common.
struct NetFlags {
  std::string model, weights, stage;
  std::int32_t level = 0;
};

// --level and --stage.
void add_state_flags(CLI::App& app, NetFlags& flags);

// Builds the net of a prototxt in `phase`, and copies the weights if there are any.
// `options` brings backend, feeds and seed. Errors: kConfig (also for a missing file), kData,
// kMismatch.
Result<std::unique_ptr<Net>> build_net(const NetFlags& flags, Phase phase, NetOptions options);

// "TRAIN" or "TEST", in any case; empty means `otherwise`. Error: kUsage.
Result<Phase> parse_phase(const std::string& text, Phase otherwise);

// The first axis of what the first layer reads: images per forward pass. 0 if the net reads
// nothing.
std::int64_t images_per_pass(const Net& net);

std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace speedo
