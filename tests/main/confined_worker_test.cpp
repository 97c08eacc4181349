// What a net from a master may name on a worker, and where snapshots may go.

#include <csignal>
#include <filesystem>
#include <utility>

#include "main/command_support.hpp"
#include "remote/remote_server.hpp"
#include "support/redis_server.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// A job whose data lie in data/, and a second folder beside it.
struct ConfinedJob {
  ConfinedJob() {
    fs::create_directory(place.file("data"));
    fs::create_directory(place.file("elsewhere"));
    std::string table;
    for (int i = 0; i < 20; ++i) table += std::to_string(i) + "," + std::to_string(i % 2) + "\n";
    const Outcome made =
        place.run({"speedo", "convert", "csv", place.write("table.csv", table),
                   place.file("data/records.bin"), "--backend", "datumfile"});
    INFO(made.errors);
    REQUIRE(made.exit_code == 0);
    read_from(place.file("data/records.bin"));
    solver = place.write("solver.prototxt",
                         "net: \"" + place.file("net.prototxt") +
                             "\" base_lr: 0.001 lr_policy: \"fixed\" max_iter: 3 random_seed: 1 "
                             "snapshot_prefix: \"" +
                             place.file("data/snap") + "\"");
  }
  void read_from(const std::string& source, const std::string& backend = "DATUMFILE") {
    place.write("net.prototxt", R"(layer { name: "data" type: "Data" top: "data" top: "label"
        data_param { source: ")" + source +
                                    R"(" backend: )" + backend + R"( batch_size: 5 } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })");
  }
  // One worker, with these flags, of a master that ends with it.
  Outcome work(const std::vector<std::string>& flags) {
    RedisServer redis;
    Process master = place.start({"speedo-master", "--solver", solver, "--redis", redis.tcp_uri(),
                                  "--join-timeout", "30"});
    const std::string line = "Add workers with: speedo-worker --master ";
    REQUIRE(master.says(line));
    const std::string log = master.errors();
    const std::size_t begin = log.find(line) + line.size();
    std::vector<std::string> command = {"speedo-worker", "--master",
                                        log.substr(begin, log.find_first_of(" \n", begin) - begin)};
    command.insert(command.end(), flags.begin(), flags.end());
    Outcome worked = place.run(command);
    if (worked.exit_code != 0) master.signal(SIGTERM);
    Context::finish(master);
    return worked;
  }
  Context place;
  std::string solver;
};

TEST_CASE("A worker reads what the master's net names below its data root alone") {
  ConfinedJob job;
  const std::string source = job.place.file("data/records.bin");
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, {"--data-root", job.place.file("elsewhere")}}) {
    const Outcome refused = job.work(flags);
    INFO(refused.errors);
    CHECK(refused.exit_code == 65);
    CHECK(refused.error_line().find("'" + source + "'") != std::string::npos);
    const std::string root = flags.empty() ? fs::current_path().string() : flags[1];
    CHECK(refused.error_line().find("--data-root '" + root + "'") != std::string::npos);
  }
  for (const std::string& root :
       {job.place.file("data"), job.place.file("elsewhere") + "," + job.place.file("data"),
        std::string("/")}) {
    const Outcome worked = job.work({"--data-root", root});
    INFO(worked.errors);
    CHECK(worked.exit_code == 0);
  }
  const Outcome absent = job.work({"--data-root", job.place.file("absent")});
  CHECK(absent.exit_code == 65);
  CHECK(absent.error_line().find("absent") != std::string::npos);
}

TEST_CASE("A worker asks for the URIs that it was told of alone") {
  ConfinedJob job;
  RemoteServer server;
  server.put("data/records.bin", job.place.read("data/records.bin"));
  job.read_from(server.uri("data/records.bin"));
  const std::string cache = job.place.file("cache");
  for (const std::string& root : {job.place.file("data"), server.uri("dat")}) {
    const Outcome refused = job.work({"--data-root", root, "--data-cache", cache});
    INFO(refused.errors);
    CHECK(refused.exit_code == 65);
    CHECK(refused.error_line().find("to --data-root") != std::string::npos);
  }
  for (const auto& [backend, kind] : {std::pair("datumfile", "DATUMFILE"),
                                      std::pair("lmdb", "LMDB"), std::pair("leveldb", "LEVELDB")}) {
    const std::string name = std::string("data/as_") + backend;
    REQUIRE(job.place
                .run({"speedo", "convert", "csv", job.place.file("table.csv"),
                      server.file(name).string(), "--backend", backend})
                .exit_code == 0);
    job.read_from(server.uri(name), kind);
    const Outcome worked = job.work({"--data-root", server.uri("data"), "--data-cache", cache});
    INFO(worked.errors);
    CHECK(worked.exit_code == 0);
  }
}

TEST_CASE("A worker reads no copies of other addresses, which its cache has") {
  ConfinedJob job;
  RemoteServer server;
  server.put("private/records.bin", job.place.read("data/records.bin"));
  server.put("public/records.bin", job.place.read("data/records.bin"));
  const std::string cache = job.place.file("cache");
  job.read_from(server.uri("private/records.bin"));
  REQUIRE(job.work({"--data-root", server.uri(""), "--data-cache", cache}).exit_code == 0);
  std::string copy;
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(cache + "/files")) {
    if (each.is_regular_file()) copy = each.path().string();
  }
  REQUIRE(copy.ends_with("/records.bin"));
  const std::string in_cache = copy.substr(cache.size() + 1);
  // The master, too, reads what its net names.
  fs::create_directories(fs::path(job.place.file(in_cache)).parent_path());
  fs::copy(copy, job.place.file(in_cache));
  for (const std::string& name : {copy, in_cache}) {
    INFO(name);
    job.read_from(name);
    const Outcome refused = job.work({"--data-root", server.uri("public"), "--data-cache", cache});
    INFO(refused.errors);
    CHECK(refused.exit_code == 65);
    CHECK(refused.error_line().find(name) != std::string::npos);
  }
}

TEST_CASE("Snapshots and what layers write go below the output root alone") {
  ConfinedJob job;
  Context& place = job.place;
  for (const char* command : {"train", "run"}) {
    const Outcome refused = place.run(
        {"speedo", command, "-solver", job.solver, "--output-root", place.file("elsewhere")});
    INFO(refused.errors);
    CHECK(refused.exit_code == 73);
    CHECK(refused.error_line().find("--output-root '" + place.file("elsewhere") + "'") !=
          std::string::npos);
    CHECK(refused.error_line().find(place.file("data/snap")) != std::string::npos);
    const Outcome written = place.run(
        {"speedo", command, "-solver", job.solver, "--output-root", place.file("data")});
    INFO(written.errors);
    CHECK(written.exit_code == 0);
  }
  place.write("writes.prototxt", R"(
      layer { name: "in" type: "DummyData" top: "x" top: "y"
              dummy_data_param { shape { dim: 2 dim: 1 } shape { dim: 2 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
              inner_product_param { num_output: 2 } }
      layer { name: "out" type: "HDF5Output" bottom: "ip" bottom: "y"
              hdf5_output_param { file_name: ")" +
                                     place.file("data/out.h5") + "\" } }");
  const std::vector<std::string> test = {"speedo", "test", "--model",
                                         place.file("writes.prototxt"), "--weights",
                                         place.file("data/snap_iter_3.caffemodel"),
                                         "--iterations", "1", "--output-root"};
  for (const auto& [root, code] : {std::pair("elsewhere", 73), std::pair("data", 0)}) {
    std::vector<std::string> command = test;
    command.push_back(place.file(root));
    const Outcome outcome = place.run(command);
    INFO(outcome.errors);
    CHECK(outcome.exit_code == code);
    CHECK(fs::exists(place.file("data/out.h5")) == (code == 0));
  }
  fs::remove(place.file("data/out.h5"));
  fs::create_symlink("../elsewhere/out.h5", place.file("data/out.h5"));
  std::vector<std::string> command = test;
  command.push_back(place.file("data"));
  const Outcome led = place.run(command);
  CHECK(led.exit_code == 73);
  CHECK(led.error_line().find("'" + place.file("elsewhere/out.h5") + "'") != std::string::npos);
  CHECK(fs::is_empty(place.file("elsewhere")));
}

TEST_CASE("A link in the output root does not lead what is written out of it") {
  ConfinedJob job;
  Context& place = job.place;
  for (const char* name : {"snap_iter_3.speedo", "snap.speedo.training"}) {
    INFO(name);
    const fs::path link = place.file(std::string("data/") + name);
    const std::string target = place.file("elsewhere/taken");
    fs::remove(link);  // of the training before
    fs::create_symlink(target, link);
    Process process = place.start({"speedo", "train", "-solver", job.solver, "--output-root",
                                   place.file("data")});
    CHECK(process.says("'" + link.string() + "' would be written as '" + target + "'"));
    process.signal(SIGTERM);  // It may be waiting for the link to go.
    const Outcome outcome = Context::finish(process);
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 73);
    CHECK(fs::is_empty(place.file("elsewhere")));
    fs::remove(link);
  }
  for (const char* name : {"snap_iter_3.caffemodel", "snap_iter_3.solverstate"}) {
    INFO(name);
    const fs::path link = place.file(std::string("data/") + name);
    fs::remove(link);
    fs::create_symlink(place.file("elsewhere/taken"), link);
    const Outcome outcome = place.run(
        {"speedo", "train", "-solver", job.solver, "--output-root", place.file("data")});
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 0);
    CHECK(fs::is_regular_file(fs::symlink_status(link)));
    CHECK(fs::is_empty(place.file("elsewhere")));
  }
}

}  // namespace
}  // namespace speedo::test
