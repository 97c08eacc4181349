#include <filesystem>
#include <fstream>

#include "cli/options/config_file.hpp"
#include "cli/flags/remote_flags.hpp"
#include "cli/flags/schedule_flags.hpp"
#include "cli/make_schedule.hpp"
#include "cli/options/read_options.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

using Words = std::vector<std::string>;

// What holds for one program after all sources were read.
struct Reading {
  TempDir folder;
  OptionValues values;
  Result<Parsed> parsed = Parsed::kRun;

  Reading(Program program, const Words& arguments, const Environment& environment,
          const std::string& file)
      : values(program) {
    const std::string path = (folder / "speedo.toml").string();
    std::ofstream(path) << file;
    Words words = arguments;
    if (!file.empty()) words.push_back("--config=" + path);
    parsed = read_some_options(words, values, environment);
  }

  std::string value(std::string_view name) const {
    std::string text = "-";
    values.get(name, text);
    return text;
  }
  std::string origin(std::string_view name) const {
    for (const OptionValue& each : values.all()) {
      if (each.option->name == name) return std::filesystem::path(each.origin).filename().string();
    }
    return "?";
  }
};

Reading read_all(const Words& arguments, const Environment& environment, const std::string& file,
                 Program program = Program::kMaster) {
  return Reading(program, arguments, environment, file);
}

std::string why_refused(const Words& arguments, const Environment& environment,
                        const std::string& file, ErrorCode code,
                        Program program = Program::kMaster) {
  const Reading reading(program, arguments, environment, file);
  REQUIRE_FALSE(reading.parsed);
  const Error& error = reading.parsed.error();
  CHECK(error.code == code);
  CHECK(error.message.find('\n') == std::string::npos);
  const std::size_t at = error.message.find("speedo.toml");
  return at == std::string::npos ? error.message : error.message.substr(at);
}

TEST_CASE("A flag goes before a variable, that before a file, and that before the default") {
  const Environment environment = {{"SPEEDO_MAX_ITER", "20"}, {"SPEEDO_LR", "0.2"}};
  const std::string file = "max_iter = 30\nlr = 0.3\nmomentum = 0.4\n";
  const Reading all = read_all({"--max-iter", "10"}, environment, file);
  REQUIRE(all.parsed);
  CHECK(all.value("max-iter") == "10");
  CHECK(all.origin("max-iter") == "--max-iter");
  CHECK(all.value("lr") == "0.2");
  CHECK(all.origin("lr") == "SPEEDO_LR");
  CHECK(all.value("momentum") == "0.4");
  CHECK(all.origin("momentum") == "speedo.toml:3:1");
  CHECK(all.value("worker-timeout") == "10");
  CHECK(all.value("weight-decay") == "-");
  CHECK(all.values.given("momentum"));
  CHECK_FALSE(all.values.given("worker-timeout"));
}

TEST_CASE("Two variables of one option are refused, though they say the same") {
  const auto why = [](const Environment& environment) {
    return why_refused({}, environment, "", ErrorCode::kUsage);
  };
  for (const std::string other : {"20", "30"}) {
    const std::string message = why({{"SPEEDO_MAXITER", "20"}, {"SPEEDO_MAX_ITER", other}});
    CHECK(message.find("SPEEDO_MAXITER") != std::string::npos);
    CHECK(message.find("SPEEDO_MAX_ITER") != std::string::npos);
  }
  // An empty one says nothing.
  const Reading one = read_all({}, {{"SPEEDO_MAXITER", "20"}, {"SPEEDO_MAX_ITER", ""}}, "");
  REQUIRE(one.parsed);
  CHECK(one.value("max-iter") == "20");
}

TEST_CASE("A size is bytes, or has a unit, wherever it stands") {
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"0", "0"}, {"1234", "1234"}, {"20GB", "20000000000"}, {"1.5GB", "1500000000"},
           {"500kB", "500000"}, {"2TiB", "2199023255552"}, {"64MiB", "67108864"}}) {
    CAPTURE(text);
    CHECK(read_all({"--data-cache-limit", text}, {}, "").value("data-cache-limit") == bytes);
    CHECK(read_all({}, {}, "data_cache_limit = \"" + text + "\"\n").value("data-cache-limit") ==
          bytes);
  }
  CHECK(read_all({}, {}, "data_cache_limit = 5000\n").value("data-cache-limit") == "5000");
  for (const std::string wrong : {"GB", "-1GB", "20 GB", "20gb", "nanGB", "infGB", "1e300TB"}) {
    CAPTURE(wrong);
    CHECK(why_refused({}, {{"SPEEDO_DATA_CACHE_LIMIT", wrong}}, "", ErrorCode::kUsage)
              .find("as in 20GB") != std::string::npos);
  }
}

TEST_CASE("What is said of files at URIs is said to the programs that are started") {
  OptionValues values(Program::kRun);
  REQUIRE(read_some_options({"--data-cache=f", "--data-cache-limit=20GB", "--data-ca=c"}, values,
                            Environment{}));
  CHECK(to_arguments(remote_flags(values)) ==
        Words{"--data-cache=f", "--data-cache-limit=20000000000", "--data-ca=c"});
  CHECK(to_arguments(RemoteFlags{}).empty());
}

TEST_CASE("A program's table goes before the top of a file, and is not for the others") {
  const std::string file =
      "grace-period = 5\nworkers = 2\n[worker]\ngracePeriod = \"1m\"\nworkers = 3\n"
      "[run]\nmax_restarts = 2\n";
  const Reading worker = read_all({}, {}, file, Program::kWorker);
  REQUIRE(worker.parsed);
  CHECK(worker.value("grace-period") == "60");
  CHECK(worker.value("workers") == "3");
  const Reading master = read_all({}, {}, file);
  REQUIRE(master.parsed);
  CHECK(master.value("grace-period") == "5");
  CHECK(master.value("workers") == "2");
}

TEST_CASE("Values of a file have the option's type") {
  const Reading read = read_all(
      {}, {},
      "sync = true\njson = false\nresume = true\nlr = 1\nstage = [\"a\", \"b\"]\ngroups = 3\n"
      "join_timeout = \"2h\"\nweights = \"a.caffemodel\"\n");
  INFO((read.parsed ? "" : read.parsed.error().message));
  REQUIRE(read.parsed);
  CHECK(read.value("sync") == "true");
  CHECK(read.value("json") == "false");
  CHECK(read.value("resume") == "store");
  CHECK(read.value("lr") == "1");
  CHECK(read.value("stage") == "a,b");
  CHECK(read.value("groups") == "3");
  CHECK(read.value("join-timeout") == "7200");
  for (const auto& [file, part] : std::vector<std::pair<std::string, std::string>>{
           {"max_iter = \"ten\"\n",
            "speedo.toml:1:1: 'max_iter' (--max-iter) takes a whole number"},
           {"\nmax_iter = 1.5\n", "speedo.toml:2:1: 'max_iter' (--max-iter) takes a whole number"},
           {"sync = 1\n", "speedo.toml:1:1: 'sync' takes true or false"},
           {"lr = \"fast\"\n", "speedo.toml:1:1: 'lr' takes a number"},
           {"store_timeout = \"5 MB\"\n", "speedo.toml:1:1: store_timeout: takes a whole number"},
           {"store_timeout = \"5d\"\n", "90s, 5m, 2h"},
           {"port = 70000\n", "speedo.toml:1:1: port: takes a whole number from 0 to 65535"},
           {"[master]\nsolver = 3\n", "speedo.toml:2:1: 'solver' takes a text"},
           {"shard = \"other\"\n", "takes one of disjoint, offset, not 'other'"}}) {
    INFO(file);
    const std::string why = why_refused({}, {}, file, ErrorCode::kConfig);
    INFO(why);
    CHECK(why.find(part) != std::string::npos);
  }
}

TEST_CASE("What is wrong with a file is said with line, column and the nearest name") {
  for (const auto& [file, part] : std::vector<std::pair<std::string, std::string>>{
           {"max_itr = 3\n",
            "speedo.toml:1:1: 'max_itr' is no option of SpeeDO, did you mean max-iter?"},
           {"[master]\nthraeds = 3\n",
            "speedo.toml:2:1: 'thraeds' is no option of speedo-master, did you mean threads?"},
           {"[worker]\nsync = true\n", "speedo.toml:2:1: 'sync' is no option of speedo-worker"},
           {"[mastr]\nsync = true\n", "is no program of SpeeDO, did you mean [master]?"},
           {"[[run]]\nsync = true\n",
            "speedo.toml:1:3: [[run]] is a list of tables: write [run], once"},
           {"resume = \"\"\n", "speedo.toml:1:1: resume: takes [=auto|=FILE], not ''"},
           {"max_iter = 3\nmax-iter = 4\n", "speedo.toml:2:1: 'max-iter' is given twice"},
           {"weedout = 3\ndrop = 4\n", "speedo.toml:2:1: 'drop' is given twice"},
           {"config = \"x\"\n", "cannot stand in a configuration file"},
           {"kind = \"csv\"\n", "speedo.toml:1:1: 'kind' is an argument of speedo convert, which "
                               "cannot stand in a configuration file"},
           {"picture = \"x.svg\"\n", "'picture' is an argument of speedo plot_log, which cannot"},
           {"shel = true\n", "'shel' is no option of SpeeDO"},
           {"no_confg = true\n", "'no_confg' is no option of SpeeDO"},
           {"max_iter = = 3\n", "speedo.toml:1:12: "},
           {"redis = \"redis://me:pass@here\"\n", "a password does not belong here"}}) {
    INFO(file);
    const std::string why = why_refused({}, {}, file, ErrorCode::kConfig);
    INFO(why);
    CHECK(why.find(part) != std::string::npos);
    CHECK(why.find("pass@") == std::string::npos);
    // What may not stand in a file.
    CHECK(why.find("mean shell") == std::string::npos);
    CHECK(why.find("mean no-config") == std::string::npos);
  }
}

TEST_CASE("A key at the top is wrong only if it is for no program, or for the one that reads it") {
  const std::string file = "workers = \"2:4\"\n";
  CHECK(read_all({}, {}, file).value("workers") == "2:4");
  const std::string why = why_refused({}, {}, file, ErrorCode::kConfig, Program::kWorker);
  CHECK(why.find("'workers' takes a whole number") != std::string::npos);
  CHECK(why.find("in the table [run]") != std::string::npos);
  CHECK(read_all({}, {}, file, Program::kTrain).parsed);
  CHECK_FALSE(read_all({}, {}, "seeds = true\n").parsed);
}

TEST_CASE("Variables: unknown names, wrong values, passwords, those of other programs") {
  const auto why = [](const std::string& name, const std::string& text) {
    return why_refused({}, {{name, text}}, "", ErrorCode::kUsage);
  };
  CHECK(why("SPEEDO_MAX_ITR", "3").find("did you mean SPEEDO_MAX_ITER?") != std::string::npos);
  CHECK(why("SPEEDO_MAX_ITER", "ten") ==
        "SPEEDO_MAX_ITER: takes a whole number from 0 to 2147483647, not 'ten'");
  CHECK(why("SPEEDO_SYNC", "maybe").find("takes true or false") != std::string::npos);
  CHECK(why("SPEEDO_GRACE_PERIOD", "5MB").find("90s, 5m, 2h") != std::string::npos);
  CHECK(why("SPEEDO_REDIS", "redis://:pass@here").find("pass@") == std::string::npos);
  for (const auto& [name, text] : Environment{{"SPEEDO_CONNECT_TIMEOUT", "wrong"},
                                              {"SPEEDO_REDIS_PASSWORD", "secret"},
                                              {"SPEEDO_TEST_SEED", "3"},
                                              {"SPEEDO_MAX_ITER", ""},
                                              {"SPEEDO_MASTER_PORT", "tcp://10.0.0.1:80"},
                                              {"SPEEDO_PORT", "tcp://10.0.0.1:80"},
                                              {"SPEEDO_REDIS_PORT_6379_TCP", "tcp://10.0.0.1:80"},
                                              {"SPEEDO_REDIS_PORT_6379_TCP_ADDR", "10.0.0.1"},
                                              {"SPEEDO_PORT_80_TCP_PROTO", "tcp"},
                                              {"SPEEDO_REDIS_PORT_6379_TCP_PORT", "6379"},
                                              {"SPEEDO_MASTER_SERVICE_PORT_HTTP", "80"},
                                              {"SPEEDO_MASTER_SERVICE_HOST", "10.0.0.1"}}) {
    INFO(name);
    CHECK(read_all({}, {{name, text}}, "").parsed);
  }
  CHECK(read_all({}, {{"SPEEDO_REDIS", "tcp://10.0.0.1:80"}}, "").value("redis") ==
        "tcp://10.0.0.1:80");
  CHECK(why("SPEEDO_MASTER_PORT", "80").find("no option of SpeeDO's") != std::string::npos);
  CHECK(why("SPEEDO_REDIS_TCP", "1").find("no option of SpeeDO's") != std::string::npos);
  CHECK(why("SPEEDO_RDIS", "tcp://10.0.0.1:80").find("SPEEDO_REDIS?") != std::string::npos);
  const Reading off = read_all({}, {{"SPEEDO_SYNC", "no"}}, "sync = true\n");
  CHECK(off.value("sync") == "false");
}

TEST_CASE("The file is the flag's, else the variable's, else speedo.toml here; or none") {
  const TempDir folder;
  std::ofstream(folder / "a.toml") << "max_iter = 1\n";
  std::ofstream(folder / "b.toml") << "max_iter = 2\n";
  const std::string a = (folder / "a.toml").string(), b = (folder / "b.toml").string();
  CHECK(read_all({"--config", a}, {{"SPEEDO_CONFIG", b}}, "").value("max-iter") == "1");
  CHECK(read_all({}, {{"SPEEDO_CONFIG", b}}, "").value("max-iter") == "2");
  const Environment both = {{"SPEEDO_CONFIG", b}, {"SPEEDO_LR", "wrong"}};
  CHECK(read_all({"--no-config"}, both, "").value("max-iter") == "-");
  const std::string why =
      why_refused({"--config", "nowhere.toml"}, {}, "", ErrorCode::kConfig);
  CHECK(why.find("nowhere.toml") != std::string::npos);
}

TEST_CASE("What must be given may come from anywhere") {
  OptionValues values(Program::kMaster);
  const auto without = read_options({}, values, {});
  REQUIRE_FALSE(without);
  CHECK(without.error().message == "--solver is required (see --help)");
  CHECK(read_options({}, values, {{"SPEEDO_SOLVER", "s.prototxt"}}));
  OptionValues other(Program::kMaster);
  const auto stray = read_options({"s.prototxt"}, other, {});
  REQUIRE_FALSE(stray);
  CHECK(stray.error().message.find("write --solver s.prototxt?") != std::string::npos);
}

TEST_CASE("What contradicts a flag is named with the file or the variable that gives it") {
  const auto why_not = [](const Words& arguments, const Environment& environment,
                          const std::string& file) {
    const Reading reading = read_all(arguments, environment, file);
    REQUIRE(reading.parsed);
    const auto made = make_schedule(schedule_flags(reading.values), 4, FlagScope::kJob);
    return made ? std::string() : made.error().message;
  };
  const std::string file = "[master]\nsync = true\n";
  const std::string in_file = why_not({"--strategy", "async"}, {}, file);
  CHECK(in_file.starts_with("--sync ("));
  CHECK(in_file.find("speedo.toml:2:1) is of the schedule sync") != std::string::npos);
  CHECK(in_file.ends_with("give one of them (--sync=false takes the switch back)"));
  const std::string variable = why_not({"--max-advance", "2"}, {{"SPEEDO_SYNC", "true"}}, "");
  CHECK(variable.starts_with("--sync (SPEEDO_SYNC) is of"));
  CHECK(variable.ends_with("(--sync=false takes the switch back)"));
  const std::string other = why_not({"--sync"}, {{"SPEEDO_STRATEGY", "async"}}, "");
  CHECK(other == "--sync is of the schedule sync, so it contradicts --strategy async "
                 "(SPEEDO_STRATEGY): give one of them");
  CHECK(why_not({"--strategy", "async", "--sync=false"}, {}, file).empty());
}

TEST_CASE("What a user has given of one program's options is a command line of another") {
  OptionValues values(Program::kRun);
  REQUIRE(read_options({"--solver", "s", "--sync", "--json=false", "--log-dir", "x",
                        "--resume=auto", "--grace-period", "1m"},
                       values, {{"SPEEDO_LR", "0.5"}}));
  CHECK(values.arguments_for(Program::kMaster) ==
        Words{"--solver=s", "--lr=0.5", "--resume=auto", "--sync", "--grace-period=60"});
}

}  // namespace
}  // namespace speedo
