#include "cli/hybrid.hpp"

#include <sstream>

#include "base/log.hpp"
#include "cli/arguments.hpp"
#include "cli/options/option_parser.hpp"

namespace speedo {

namespace {

// "=maxIter" as "--maxIter".
Result<std::vector<std::string>> with_dashes(const std::vector<std::string>& words,
                                             const std::string& place) {
  std::vector<std::string> result;
  for (const std::string& word : words) {
    if (word == "=")
      return usage_error(place + ": a single '=' is no flag ('==' separates stages)");
    result.push_back(word[0] == '=' ? "--" + word.substr(1) : word);
  }
  return result;
}

Result<HybridStage> parse_stage(const std::vector<std::string>& words, std::size_t number) {
  HybridStage stage;
  stage.place = fmt::format("--hybrid, stage {}", number);
  if (words.empty()) {
    return usage_error(stage.place + " is empty: write =FLAG VALUE ... between two '=='");
  }
  SPEEDO_ASSIGN(const std::vector<std::string> arguments, with_dashes(words, stage.place));
  OptionValues values(Program::kStage);
  if (auto read = read_flags(arguments, values); !read) {
    return usage_error(stage.place + ": " + read.error().message);
  }
  stage.flags = schedule_flags(values);
  return stage;
}

}  // namespace

std::vector<std::string> fold_hybrid(const std::vector<std::string>& arguments) {
  return fold_words(arguments, "hybrid", arguments.size());
}

Result<std::vector<HybridStage>> parse_hybrid(const std::string& text) {
  std::vector<std::vector<std::string>> stages(1);
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    if (word == "==") {
      stages.emplace_back();
    } else {
      stages.back().push_back(word);
    }
  }
  std::vector<HybridStage> result;
  for (const std::vector<std::string>& words : stages) {
    SPEEDO_ASSIGN(HybridStage stage, parse_stage(words, result.size() + 1));
    result.push_back(std::move(stage));
  }
  return result;
}

}  // namespace speedo
