// The house rules that a program can check. Each finding is one line, "file:line: what".

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <speedo/train/strategy.hpp>

#include "style/findings.hpp"
#include "style/type_names.hpp"

namespace speedo {
namespace {

std::string at(const SourceFile& file, std::size_t line_index) {
  return file.path + ":" + std::to_string(line_index + 1) + ": ";
}

bool is_text(const SourceFile& file) {
  return file.is_code() || file.has_suffix(".md") || file.has_suffix(".txt") ||
         file.has_suffix(".cmake") || file.has_suffix(".sh") || file.has_suffix(".proto") ||
         file.has_suffix(".json") || file.has_suffix(".prototxt");
}

TEST_CASE("The rules see the project's files") { REQUIRE(tree().size() > 100); }

TEST_CASE("Lines are clean, at most 100 columns, and the last one ends") {
  Findings findings;
  for (const SourceFile& file : tree()) {
    if (!is_text(file) || file.in("tests/golden/data")) continue;
    if (!file.text.empty() && file.text.back() != '\n') {
      findings.push_back(at(file, 0) + "no newline at the end");
    }
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (file.is_code() && line.size() > 100) findings.push_back(at(file, i) + "over 100 columns");
      if (line.find('\t') != std::string::npos) findings.push_back(at(file, i) + "tab");
      if (!line.empty() && line.back() == ' ' && !file.has_suffix(".md")) {
        findings.push_back(at(file, i) + "trailing space");
      }
    }
  }
  expect_none(findings);
}

TEST_CASE("Files stay under their limit: 500 lines, tests 800, a room's README 60") {
  Findings findings;
  for (const SourceFile& file : tree()) {
    std::size_t limit = SIZE_MAX;
    if (file.is_code()) limit = file.in("tests") ? 800 : 500;
    if (file.has_suffix("/README.md")) limit = 60;
    if (file.lines.size() > limit) {
      findings.push_back(at(file, limit) + "over " + std::to_string(limit) + " lines");
    }
  }
  expect_none(findings);
}

TEST_CASE("Functions stay under 60 lines") {
  Findings findings;
  for (const SourceFile& file : tree()) {
    if (!file.is_source() || file.in("tests")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      const bool opens = !line.empty() && line.back() == '{' && line[0] != ' ' && line[0] != '}' &&
                         line[0] != '#' && line.find("namespace") == std::string::npos &&
                         !line.starts_with("class") && !line.starts_with("struct") &&
                         !line.ends_with("= {");  // A table is as long as what is in it.
      if (!opens) continue;
      std::size_t end = i;
      while (end < file.lines.size() && !file.lines[end].starts_with("}")) ++end;
      if (end - i > 60) findings.push_back(at(file, i) + std::to_string(end - i) + " lines");
    }
  }
  expect_none(findings);
}

TEST_CASE("Headers have #pragma once, and a source includes its own header first") {
  Findings findings;
  std::map<std::string, std::string> header_of;  // path without extension -> include text
  for (const SourceFile& file : tree()) {
    if (!file.is_header()) continue;
    if (std::find(file.lines.begin(), file.lines.end(), "#pragma once") == file.lines.end()) {
      findings.push_back(at(file, 0) + "no #pragma once");
    }
    header_of[file.path.substr(0, file.path.size() - 4)] = file.path;
  }
  for (const SourceFile& file : tree()) {
    if (!file.is_source()) continue;
    const auto own = header_of.find(file.path.substr(0, file.path.size() - 4));
    if (own == header_of.end()) continue;
    const auto includes = file.includes();
    if (includes.empty() || own->second.find(includes.front()) == std::string::npos) {
      findings.push_back(at(file, 0) + "does not include its own header first");
    }
  }
  expect_none(findings);
}

// The files of src/train that own threads or read and write; sessions and all else are pure.
bool is_threaded_part(const SourceFile& file) {
  if (file.in("src/train/session")) return false;
  for (const char* folder : {"job", "parts", "states"}) {
    if (file.in(std::string("src/train/") + folder)) return true;
  }
  for (const char* name : {"merger", "trainer"}) {
    if (file.stem().starts_with(name)) return true;
  }
  return false;
}

TEST_CASE("Strategies, sessions and merge arithmetic are pure") {
  const std::vector<std::string> banned = {
      "steady_clock", "system_clock", "high_resolution_clock", "thread", "jthread", "mutex",
      "rand", "random_device", "unordered_map", "unordered_set", "spdlog", "getenv", "ifstream",
      "ofstream", "fstream", "SPEEDO_INFO", "SPEEDO_WARN"};
  Findings findings;
  for (const SourceFile& file : tree()) {
    const bool pure = file.in("strategies") || (file.in("src/train") && !is_threaded_part(file));
    if (!file.is_code() || !pure) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = code_of(file.lines[i]);
      for (const std::string& word : banned) {
        if (has_word(code, word)) findings.push_back(at(file, i) + "pure code uses " + word);
      }
    }
  }
  expect_none(findings);
}

// Adapters that call a third party which throws, or that hold memory for one.
bool is_adapter(const SourceFile& file) {
  return file.in("actors") || file.in("src/cli") || file.in("src/main") || file.in("src/data") ||
         file.in("tests") || file.in("src/store/redis") || file.in("src/cpu/onednn") ||
         file.stem() == "http_server" || file.stem() == "guarded" ||
         file.stem() == "process_platform";
}

TEST_CASE("No exceptions and no bare new outside adapters; std::cout only in the programs") {
  Findings findings;
  for (const SourceFile& file : tree()) {
    if (!file.is_code()) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = code_of(file.lines[i]);
      for (const char* word : {"throw", "catch"}) {
        if (has_word(code, word) && !is_adapter(file)) findings.push_back(at(file, i) + word);
      }
      const bool deleted = code.find("= delete") != std::string::npos;
      if (has_word(code, "delete") && !deleted && !is_adapter(file)) {
        findings.push_back(at(file, i) + "delete");
      }
      // A private constructor needs new; the result goes straight into a unique_ptr.
      const bool owned = code.find("unique_ptr<") != std::string::npos;
      const bool included = code.starts_with("#include");  // <new>
      if (has_word(code, "new") && !owned && !included && !is_adapter(file)) {
        findings.push_back(at(file, i) + "new");
      }
      const bool program = file.in("src/main") || file.in("tests");
      if (code.find("std::cout") != std::string::npos && !program) {
        findings.push_back(at(file, i) + "std::cout");
      }
      if (code.find("using namespace") != std::string::npos) {
        findings.push_back(at(file, i) + "using namespace");
      }
      if (code.find("std::views::") != std::string::npos) {
        findings.push_back(at(file, i) + "std::views, which the fuzzers' clang 14 cannot do");
      }
      if (file.lines[i].find("TODO") != std::string::npos && !file.in("tests/style")) {
        findings.push_back(at(file, i) + "TODO");
      }
    }
  }
  expect_none(findings);
}

// Two definitions of one name break C++'s one-definition rule without a word from the linker: it
// keeps one destructor and one type information for both.
Findings repeated_types(const std::vector<SourceFile>& files) {
  Findings findings;
  std::map<std::string, std::string> first;  // name -> place
  for (const SourceFile& file : files) {
    const bool linked = file.in("include") || file.in("src") || file.in("actors") ||
                        file.in("strategies") || file.in("tests/support");
    if (!file.is_code() || !linked) continue;
    for (const TypeDefinition& type : type_definitions(file.text)) {
      const std::string place = at(file, type.line - 1);
      const auto [known, is_new] = first.emplace(type.name, place);
      if (!is_new) findings.push_back(place + type.name + " stands at " + known->second + "too");
    }
  }
  return findings;
}

TEST_CASE("A type name stands once in its namespace") { expect_none(repeated_types(tree())); }

TEST_CASE("A second type of one name would be found, wherever it stands") {
  for (const char* folder : {"include/speedo/core", "src/data", "actors", "strategies",
                             "tests/support"}) {
    SourceFile twin;
    twin.path = std::string(folder) + "/planted.cpp";
    twin.text = "namespace speedo {\nclass ParameterStore {\n};\n}\n";
    std::vector<SourceFile> files = tree();
    files.push_back(twin);
    const Findings findings = repeated_types(files);
    CAPTURE(folder, findings);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].starts_with(twin.path + ":2: speedo::ParameterStore stands at "));
  }
}

TEST_CASE("Actor messages have no floating-point fields") {
  Findings findings;
  for (const SourceFile& file : tree()) {
    if (file.path != "include/speedo/train/messages.hpp") continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = code_of(file.lines[i]);
      if (has_word(code, "float") || has_word(code, "double")) {
        findings.push_back(at(file, i) + "floats do not survive CAF 0.17.6");
      }
    }
  }
  expect_none(findings);
}

TEST_CASE("Every source is named in a CMakeLists.txt") {
  std::string lists;
  for (const SourceFile& file : tree()) {
    if (file.has_suffix("CMakeLists.txt")) lists += file.text;
  }
  Findings findings;
  for (const SourceFile& file : tree()) {
    if (!file.is_source()) continue;
    const std::string name = std::filesystem::path(file.path).filename().string();
    if (lists.find(name) == std::string::npos) findings.push_back(file.path + ": in no CMake list");
  }
  expect_none(findings);
}

TEST_CASE("No file is a large blob") {
  Findings findings;
  for (const SourceFile& file : tree()) {
    if (!is_text(file) && file.text.size() > 64 * 1024) {
      findings.push_back(file.path + ": over 64 KiB");
    }
  }
  expect_none(findings);
}

TEST_CASE("Every room has a README, and every schedule stands in the strategies' one") {
  std::set<std::string> readmes;
  for (const SourceFile& file : tree()) {
    if (file.has_suffix("README.md")) readmes.insert(file.path);
  }
  const std::string& strategies_readme = file_named("strategies/README.md").text;
  Findings findings;
  for (const SourceFile& file : tree()) {
    if (!file.is_source() || file.in("tests")) continue;
    const std::string folder = std::filesystem::path(file.path).parent_path().string();
    if (readmes.count(folder + "/README.md") == 0) findings.push_back(folder + ": no README.md");
  }
  for (const StrategyEntry& entry : strategy_registry()) {
    if (strategies_readme.find(entry.name) == std::string::npos) {
      findings.push_back(std::string("strategies/README.md: does not name ") + entry.name);
    }
  }
  expect_none(findings);
}

}  // namespace
}  // namespace speedo
