#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/flags/schedule_flags.hpp"

namespace speedo {

// The stages of a hybrid as written, each with a name for messages ("--hybrid, stage 2",
// "stages.toml:7:1, stage 2").
struct HybridStage {
  std::string place;
  ScheduleFlags flags;
};

// SpeeDO writes stages behind --hybrid as many arguments: `--hybrid =maxIter 100 =sync == =drop 3`.
// Folds them into one, "--hybrid==maxIter 100 =sync == =drop 3"; they end at the next flag with
// dashes, or with the arguments. Also takes them as one argument in quotes.
std::vector<std::string> fold_hybrid(const std::vector<std::string>& arguments);

// The stages of such a text: "=" stands for "--", "==" separates stages. Error: kUsage, naming the
// stage.
Result<std::vector<HybridStage>> parse_hybrid(const std::string& text);

// The stages of a TOML file: one [[stage]] each, whose keys are flags in any spelling. Error:
// kConfig, with file, line and column.
Result<std::vector<HybridStage>> read_hybrid_file(const std::string& path);

}  // namespace speedo
