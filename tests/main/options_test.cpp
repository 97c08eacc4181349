// The table of options as a user meets it in shells, the manual and files.

#include <filesystem>

#include "cli/options/program_table.hpp"
#include "main/command_support.hpp"

namespace speedo::test {
namespace {

// What bash offers for the last of `words`.
std::string offers(Context& place, const std::vector<std::string>& words) {
  std::string script = "source ./completion; COMP_WORDS=(";
  for (const std::string& word : words) script += "'" + word + "' ";
  script += "); COMP_CWORD=" + std::to_string(words.size() - 1) +
            "; _speedo " + words.front() + "; echo \" ${COMPREPLY[*]} \"";
  const Outcome outcome = place.run({"/bin/bash", "-c", "cd '" + place.file("") + "'; " + script});
  CHECK(outcome.errors.empty());
  return outcome.output;
}

TEST_CASE("bash completes commands, flags and the words that they take") {
  Context place;
  const Outcome script = place.run({"speedo", "completion", "bash"});
  REQUIRE(script.exit_code == 0);
  place.write("completion", script.output);
  CHECK(offers(place, {"speedo", "tra"}).find(" train ") != std::string::npos);
  CHECK(offers(place, {"speedo", "run", "--max-"}).find(" --max-iter ") != std::string::npos);
  CHECK(offers(place, {"speedo", "run", "--redis-"}).find("--redis") == std::string::npos);
  CHECK(offers(place, {"speedo-master", "--redis-"}).find("-password-file") != std::string::npos);
  CHECK(offers(place, {"speedo", "run", "--strategy", "sync"}).find(" sync-easgd ") !=
        std::string::npos);
  CHECK(offers(place, {"speedo", "simulate", "--calib"}).find(" --calibrate ") !=
        std::string::npos);
  CHECK(place.run({"speedo", "completion", "fish"}).exit_code == 2);
}

TEST_CASE("zsh reads what is printed for it") {
  Context place;
  if (place.run({"/bin/bash", "-c", "command -v zsh"}).exit_code != 0) {
    WARN("skipped: there is no zsh here");
    return;
  }
  place.write("_speedo", place.run({"speedo", "completion", "zsh"}).output);
  const Outcome checked = place.run({"/usr/bin/zsh", "-n", place.file("_speedo")});
  CHECK(checked.exit_code == 0);
  CHECK(checked.errors.empty());
}

TEST_CASE("Pages of the manual are well formed") {
  Context place;
  const std::filesystem::path folder = place.file("man");
  std::filesystem::create_directory(folder);
  REQUIRE(place.run({"speedo", "manual", "--folder", folder.string()}).exit_code == 0);
  std::size_t pages = 0;
  for (const auto& page : std::filesystem::directory_iterator(folder)) {
    ++pages;
    INFO(page.path().string());
    const Outcome checked =
        place.run({"/usr/bin/groff", "-man", "-Tutf8", "-wall", "-z", page.path().string()});
    CHECK(checked.exit_code == 0);
    CHECK(checked.errors.empty());
  }
  CHECK(pages == program_table().size() + 1);
}

TEST_CASE("speedo manual prints the page that is asked for, or that of speedo itself") {
  Context place;
  const auto page = [&](const std::vector<std::string>& command) {
    const Outcome printed = place.run(command);
    REQUIRE(printed.exit_code == 0);
    return printed.output.substr(0, printed.output.find(' ', 4));
  };
  CHECK(page({"speedo", "manual"}) == ".TH SPEEDO");
  CHECK(page({"speedo", "manual", "run"}) == ".TH SPEEDO-RUN");
  CHECK(place.run({"speedo", "manual", "run", "--folder", "."}).exit_code == 2);
  CHECK(place.run({"speedo", "manual", "--folder", place.file("new/man1")}).exit_code == 0);
  CHECK(place.read("new/man1/speedo.1").starts_with(".TH SPEEDO"));
  const std::string below_a_file = place.write("file", "") + "/man1";
  CHECK(place.run({"speedo", "manual", "--folder", below_a_file}).exit_code == 73);
}

TEST_CASE("speedo config tells each value and where it comes from") {
  Context place;
  place.write("here.toml", "max_iter = 7\n[run]\nworkers = 3\n");
  const std::vector<std::string> environment = {"SPEEDO_SEED=5"};
  const std::string file = "--config=" + place.file("here.toml");
  const Outcome shown = place.run({"speedo", "config", "run", file, "--sync"}, environment);
  REQUIRE(shown.exit_code == 0);
  for (const char* part : {"--sync", "SPEEDO_SEED", "here.toml:1:1", "here.toml:3:1"}) {
    INFO(part);
    CHECK(shown.output.find(part) != std::string::npos);
  }
  const Outcome as_json =
      place.run({"speedo", "config", "--json", "run", file, "--sync"}, environment);
  REQUIRE(as_json.exit_code == 0);
  const auto report = as_json.json();
  CHECK(as_json.output.find('\n') == as_json.output.size() - 1);
  int given = 0;
  for (const auto& option : report["options"]) given += option["source"] != "default" ? 1 : 0;
  CHECK(given == 5);  // --config, too
  CHECK(place.run({"speedo", "config", "rum"}).error_line().find("did you mean run?") !=
        std::string::npos);
  const Outcome secret = place.run({"speedo", "config", "master", "--redis=redis://:pw9@here"});
  CHECK(secret.output.find("pw9") == std::string::npos);
  const Outcome query = place.run({"speedo", "config", "train", "--weights=http://h/w?hidden"});
  CHECK(query.output.find("http://h/w\n") != std::string::npos);
  CHECK(query.output.find("hidden") == std::string::npos);
}

TEST_CASE("speedo config shows JSON wherever --json stands, and asks for no arguments") {
  Context place;
  for (const char* program : {"master", "worker"}) {
    CAPTURE(program);
    const Outcome shown = place.run({"speedo", "config", program, "--json"});
    INFO(shown.errors);
    REQUIRE(shown.exit_code == 0);
    CHECK(shown.json()["program"] == std::string("speedo-") + program);
  }
  for (const char* program : {"convert", "extract_features", "classify", "test"}) {
    CAPTURE(program);
    const Outcome shown = place.run({"speedo", "config", program});
    INFO(shown.errors);
    CHECK(shown.exit_code == 0);
  }
  CHECK(place.run({"speedo", "convert"}).error_line().find("'kind' is missing") !=
        std::string::npos);
}

TEST_CASE("A file and the environment train as the flags do; what is wrong in them is refused") {
  Context place;
  const std::string solver = place.write_solver();
  place.write("job.toml", "solver = \"" + solver + "\"\n[train]\nmax_iter = 3\n");
  const Outcome trained = place.run({"speedo", "train", "--json", "--no-config=false"},
                                    {"SPEEDO_CONFIG=" + place.file("job.toml")});
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  CHECK(trained.json()["iterations"] == 3);
  place.write("job.toml", "slover = \"" + solver + "\"\n");
  const Outcome misspelt =
      place.run({"speedo", "train", "--config", place.file("job.toml")});
  CHECK(misspelt.exit_code == 64);
  CHECK(misspelt.error_line().find("job.toml:1:1: 'slover' is no option of SpeeDO, did you mean "
                                   "solver?") != std::string::npos);
  const Outcome variable = place.run({"speedo", "train", "--solver", solver}, {"SPEEDO_LR=fast"});
  CHECK(variable.exit_code == 2);
  CHECK(variable.error_line().find("SPEEDO_LR: takes a number") != std::string::npos);
}

}  // namespace
}  // namespace speedo::test
