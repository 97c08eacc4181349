// What the pages beside the code say of flags and messages is so.

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/flags/speedo_flags.hpp"
#include "cli/options/later_flags.hpp"
#include "cli/options/option.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

std::string text_of_file(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// The rows of a page's tables below a heading, their cells without backquotes.
std::vector<std::vector<std::string>> rows_below(const std::string& page,
                                                 const std::string& heading) {
  std::istringstream lines(page.substr(page.find(heading)));
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.starts_with("#")) {
    if (!line.starts_with("| ")) continue;
    std::istringstream cells(line.substr(1));
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, '|');) {
      std::erase(cell, '`');
      const std::size_t begin = cell.find_first_not_of(' ');
      const std::size_t end = cell.find_last_not_of(' ');
      row.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
    }
    rows.push_back(row);
  }
  rows.erase(rows.begin());  // the head
  return rows;
}

TEST_CASE("The map of SpeeDO's flags is true") {
  const std::string page = text_of_file("src/cli/from-speedo.md");
  std::size_t checked = 0;
  for (const auto& [heading, program] : {std::pair{"## The master's", Program::kMaster},
                                         std::pair{"## The worker's", Program::kWorker}}) {
    for (const std::vector<std::string>& row : rows_below(page, heading)) {
      INFO(row[0]);
      const Option* option = find_option(row[0].substr(2), program);
      REQUIRE(option != nullptr);
      CHECK("--" + std::string(option->name) == row[1]);
      ++checked;
    }
  }
  for (const std::vector<std::string>& row : rows_below(page, "## Refused")) {
    INFO(row[0]);
    const bool is_later = !refuse_later_flags({row[0], "x"});
    const bool is_replaced = !refuse_speedo_flags(
        {row[0], "x"}, row[1] == "master" ? SpeedoProgram::kMaster : SpeedoProgram::kWorker);
    CHECK((is_later || is_replaced));
    ++checked;
  }
  CHECK(checked == 38);
}

TEST_CASE("Messages that are explained are those of the programs") {
  std::string sources;
  for (const char* folder : {"src", "actors"}) {
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
      if (each.path().extension() != ".cpp") continue;
      std::string text = text_of_file(each.path());
      // A text goes on in the next line's quotes.
      for (std::size_t at = text.find("\"\n"); at != std::string::npos;
           at = text.find("\"\n", at)) {
        const std::size_t next = text.find_first_not_of(" ", at + 2);
        if (next != std::string::npos && text[next] == '"') {
          text.erase(at, next + 1 - at);
        } else {
          ++at;
        }
      }
      sources += text;
    }
  }
  const std::string page = text_of_file("src/doctor/troubleshooting.md");
  const auto rows = rows_below(page, "# What a message means");
  CHECK(rows.size() > 10);
  for (const std::vector<std::string>& row : rows) {
    INFO(row[0]);
    REQUIRE(row[0].size() > 2);
    CHECK(sources.find(row[0].substr(1, row[0].size() - 2)) != std::string::npos);
  }
}

}  // namespace
}  // namespace speedo
