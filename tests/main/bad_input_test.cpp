// Bad input ends a command with one line that names the thing, and with the exit code of its kind.

#include <csignal>
#include <filesystem>

#include "main/command_support.hpp"
#include "support/redis_server.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// That the command fails as it should: code, program's name first, and `names` in the line.
void expect_failure(Context& place, const std::vector<std::string>& command, int exit_code,
                    const std::vector<std::string>& names) {
  const Outcome outcome = place.run(command);
  INFO(outcome.errors);
  CHECK(outcome.exit_code == exit_code);
  CHECK(outcome.output.empty());
  const std::string line = outcome.error_line();
  CHECK(line.find("speedo") == 0);
  for (const std::string& name : names) {
    INFO(name);
    CHECK(line.find(name) != std::string::npos);
  }
}

TEST_CASE("Missing, empty and malformed solvers and nets") {
  Context place;
  const std::string empty = place.write("empty.prototxt", "");
  const std::string malformed = place.write("malformed.prototxt", "base_lr: 0.1\nmax_iter: 5 }\n");
  const std::string unknown_field = place.write("field.prototxt", "base_lr: 0.1\nbase_lrr: 1\n");
  const std::string no_net =
      place.write("no_net.prototxt", "net: \"nowhere.prototxt\" max_iter: 5\n");
  for (const char* command : {"train", "run"}) {
    const auto fails = [&](const std::string& solver, const std::vector<std::string>& names) {
      expect_failure(place, {"speedo", command, "-solver", solver}, 64, names);
    };
    fails("missing.prototxt", {"missing.prototxt"});
    fails(empty, {"empty.prototxt", "empty"});
    fails(malformed, {"malformed.prototxt:2:13"});
    fails(unknown_field, {"field.prototxt:2:", "base_lrr"});
  }
  expect_failure(place, {"speedo", "train", "-solver", no_net}, 64, {"nowhere.prototxt"});
  expect_failure(place, {"speedo", "run", "-solver", no_net}, 64, {"nowhere.prototxt"});
}

TEST_CASE("Nets that cannot be built") {
  Context place;
  const auto fails = [&](const std::string& layers, int code,
                         const std::vector<std::string>& names) {
    const std::string model = place.write("bad.prototxt", layers);
    expect_failure(place, {"speedo", "net", "--model", model}, code, names);
    expect_failure(place, {"speedo", "time", "--model", model}, code, names);
  };
  const std::string input = R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } })";
  fails("layer { name: \"a\" type: \"Unheard\" top: \"a\" }", 64, {"Unheard", "'a'"});
  fails(input + "layer { name: \"r\" type: \"ReLU\" bottom: \"y\" top: \"r\" }", 64,
        {"'r'", "'y'"});
  fails("layer {\n name: \"p\" type: \"Pooling\"\n pooling_param { pool: MEDIAN } }", 64,
        {"bad.prototxt:3:", "MEDIAN"});
  fails(R"(layer { name: "in" type: "Input" top: "x"
           input_param { shape { dim: 100000 dim: 100000 dim: 100000 } } })",
        64, {"'in'"});
  fails(input + R"(layer { name: "in2" type: "Input" top: "y"
                   input_param { shape { dim: 3 dim: 3 } } }
                   layer { name: "e" type: "Eltwise" bottom: "x" bottom: "y" top: "z" })",
        64, {"'e'"});
}

TEST_CASE("Data that is missing, empty or damaged") {
  Context place;
  const auto solver_on = [&](const std::string& source, const std::string& backend) {
    place.write("data_net.prototxt", R"(layer { name: "d" type: "Data" top: "data" top: "label"
        data_param { source: ")" + source +
                                         "\" backend: " + backend + R"( batch_size: 2 } }
        layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
                inner_product_param { num_output: 2 } }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "l" })");
    return place.write("data_solver.prototxt", "net: \"" + place.file("data_net.prototxt") +
                                                   "\" max_iter: 2 base_lr: 0.1 lr_policy: "
                                                   "\"fixed\" snapshot_prefix: \"" +
                                                   place.file("s") + "\"");
  };
  expect_failure(place, {"speedo", "train", "-solver", solver_on("nowhere_lmdb", "LMDB")}, 65,
                 {"nowhere_lmdb"});
  fs::create_directory(place.folder() / "damaged_lmdb");
  place.write("damaged_lmdb/data.mdb", std::string(8192, 'x'));
  expect_failure(place,
                 {"speedo", "train", "-solver", solver_on(place.file("damaged_lmdb"), "LMDB")}, 65,
                 {"damaged_lmdb"});
  const std::string file = place.write("cut.datumfile", std::string("\xff\x00\x00\x00key", 7));
  expect_failure(place, {"speedo", "train", "-solver", solver_on(file, "DATUMFILE")}, 65,
                 {"cut.datumfile"});
  place.write("empty.idx", "");
  expect_failure(place,
                 {"speedo", "convert", "idx", place.file("empty.idx"), place.file("empty.idx"),
                  place.file("out_lmdb")},
                 65, {"empty.idx"});
  expect_failure(place, {"speedo", "convert", "csv", "none.csv", place.file("out_lmdb")}, 65,
                 {"none.csv"});
  CHECK_FALSE(fs::exists(place.file("out_lmdb")));
  for (const char* command : {"mean", "compute_image_mean"}) {
    expect_failure(place, {"speedo", command, "nowhere_lmdb", place.file("none/mean")}, 73,
                   {"none/mean", "No such file or directory"});
  }
  expect_failure(place, {"speedo", "mean", "nowhere_lmdb", place.file("."), "--force"}, 73,
                 {"it is a folder"});
  expect_failure(place, {"speedo", "mean", "nowhere_lmdb", place.file("mean")}, 65,
                 {"nowhere_lmdb"});
}

TEST_CASE("A filler that is not known") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 2");
  std::string net = place.read("net.prototxt");
  net.replace(net.find("xavier"), 6, "xavierr");
  const std::string model = place.write("net.prototxt", net);
  expect_failure(place, {"speedo", "net", "--model", model}, 64, {"'ip1'", "xavierr"});
  expect_failure(place, {"speedo", "train", "-solver", solver}, 64, {"'ip1'", "xavierr"});
}

TEST_CASE("A loss without a top is trained on and tested") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 40");
  std::string net = place.read("net.prototxt");
  const std::string top = " top: \"loss\"";
  net.erase(net.rfind(top), top.size());
  const std::string model = place.write("net.prototxt", net);
  const Outcome shown = place.run({"speedo", "net", "--model", model});
  CHECK(shown.exit_code == 0);
  CHECK(shown.output.find("loss") != std::string::npos);
  const Outcome trained = place.run({"speedo", "train", "-solver", solver, "--json"});
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  CHECK(trained.json()["loss"] < 1.0);
  CHECK(trained.json()["test_loss"] < 1.0);
}

TEST_CASE("A label out of range") {
  Context place;
  place.write("two.csv", "1,2,0\n3,4,9\n");
  REQUIRE(place.run({"speedo", "convert", "csv", place.file("two.csv"), place.file("two_lmdb")})
              .exit_code == 0);
  place.write("net.prototxt", R"(layer { name: "d" type: "Data" top: "data" top: "label"
      data_param { source: ")" + place.file("two_lmdb") +
                                  R"(" backend: LMDB batch_size: 2 } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 2 } }
      layer { name: "cost" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "l" })");
  const std::string solver = place.write(
      "solver.prototxt", "net: \"" + place.file("net.prototxt") + "\" max_iter: 2 base_lr: 0.1 " +
                             "lr_policy: \"fixed\" snapshot_prefix: \"" + place.file("s") + "\"");
  expect_failure(place, {"speedo", "train", "-solver", solver}, 65,
                 {"'cost'", "9", "layer 'd' reads '" + place.file("two_lmdb") + "'"});
  expect_failure(place, {"speedo", "run", "-solver", solver}, 65, {"'cost'", "9"});
  expect_failure(place, {"speedo", "run", "-solver", solver, "--json"}, 65, {"'cost'", "9"});
}

TEST_CASE("Weights of another net, and weights cut short") {
  Context place;
  const std::string solver = place.write_solver();
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  const std::string model = place.file("snap_iter_40.caffemodel");
  place.write_net("net.prototxt", 17);  // the solver's net is another one now
  const std::string message = "'ip1'";
  expect_failure(place, {"speedo", "train", "-solver", solver, "-weights", model}, 78, {message});
  expect_failure(
      place,
      {"speedo", "train", "-solver", solver, "-snapshot", place.file("snap_iter_40.solverstate")},
      78, {message});
  expect_failure(place, {"speedo", "test", "-model", place.file("net.prototxt"), "-weights", model},
                 78, {message});
  fs::resize_file(model, fs::file_size(model) / 2);
  expect_failure(place, {"speedo", "test", "-model", place.file("net.prototxt"), "-weights", model},
                 65, {"snap_iter_40.caffemodel"});
  expect_failure(place, {"speedo", "train", "-solver", solver, "-weights", "none.caffemodel"}, 65,
                 {"none.caffemodel"});
}

TEST_CASE(
    "Redis that is absent or refuses the password, a port in use, a master that is not there") {
  Context place;
  const std::string solver = place.write_solver();
  expect_failure(place, {"speedo-master", "--solver", solver, "--redis", "127.0.0.1:1",
                         "--store-timeout", "1"}, 69,
                 {"127.0.0.1:1", "redis-server"});
  const Outcome at_once = place.run({"speedo-master", "--solver", solver, "--redis", "127.0.0.1:1",
                                     "--store-timeout", "0"});
  CHECK(at_once.exit_code == 69);
  CHECK_THAT(at_once.errors, !Catch::Contains("attempts"));
  RedisServer redis({.password = "secret", .append_only = false, .extra = ""});
  const std::string where = "127.0.0.1:" + std::to_string(redis.port());
  expect_failure(place, {"speedo-master", "--solver", solver, "--redis", where}, 77, {where});
  expect_failure(place, {"speedo-master", "--solver", solver, "--redis", "redis://:wrong@" + where},
                 77, {where});
  expect_failure(place,
                 {"speedo-master", "--solver", solver, "--redis", redis.tcp_uri(), "--port",
                  std::to_string(redis.port())},
                 69, {std::to_string(redis.port())});
  const RedisServer evicting(
      {.password = "", .append_only = false, .extra = "maxmemory-policy allkeys-lru\n"});
  expect_failure(place, {"speedo-master", "--solver", solver, "--redis", evicting.tcp_uri()}, 64,
                 {std::to_string(evicting.port()), "maxmemory-policy noeviction"});
  expect_failure(place, {"speedo-worker", "--master", "127.0.0.1:1", "--connect-timeout", "1"}, 69,
                 {"127.0.0.1:1"});
  expect_failure(place, {"speedo-worker", "--master", "nonsense"}, 2, {"nonsense", "host:port"});
  expect_failure(place, {"speedo-worker"}, 2, {"--master"});
}

TEST_CASE("A snapshot folder that cannot be written is refused before training") {
  Context place;
  place.write("file", "");
  const std::string solver = place.write(
      "solver.prototxt", "net: \"" + place.write_net() + "\" max_iter: 5 base_lr: 0.1 lr_policy: " +
                             "\"fixed\" snapshot_prefix: \"" + place.file("file/snap") + "\"");
  for (const char* command : {"train", "run"}) {
    const Outcome outcome = place.run({"speedo", command, "-solver", solver});
    CHECK(outcome.exit_code == 73);
    CHECK(outcome.error_line().find("file") != std::string::npos);
    CHECK(outcome.errors.find("Iteration") == std::string::npos);
  }
}

TEST_CASE("A loss that is not finite ends training after a named number of times") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 1000");
  expect_failure(place, {"speedo", "train", "-solver", solver, "--lr", "1e30"}, 64,
                 {"not finite", "base_lr"});
}

TEST_CASE("Bad usage") {
  Context place;
  const std::string solver = place.write_solver();
  const auto fails = [&](std::vector<std::string> command, const std::vector<std::string>& names) {
    command.insert(command.begin(), "speedo");
    expect_failure(place, command, 2, names);
  };
  fails({"train"}, {"--solver"});
  fails({"train", "-solver"}, {"--solver"});
  fails({"train", "-solver", solver, "-snapshot", "a.solverstate", "-weights", "b.caffemodel"},
        {"--snapshot", "--weights", "give one of them"});
  fails({"train", "-solver", solver, "-gpu", "64"}, {"--gpu", "63"});
  fails({"train", "-solver", solver, "--precision", "tf32"}, {"only GPUs"});
  fails({"train", "-solver", solver, "-sigint_effect", "dance"}, {"dance"});
  fails({"test", "-model", "m"}, {"--weights"});
  fails({"time", "-model", place.file("net.prototxt"), "-phase", "NONE"}, {"NONE"});
  fails({"run", "-solver", solver, "--hdfs", "x"}, {"not built yet"});
  fails({"run", "-solver", solver, "--workers", "2", "--sync", "--strategy", "async"},
        {"contradicts"});
  fails({"convert", "jpeg", "a", "b"}, {"jpeg"});
  fails({"convert", "csv", "a"}, {"output"});
  fails({"mean", "a"}, {"output"});
}

TEST_CASE("Threads, instruction sets and precisions that cannot be had") {
  Context place;
  const std::string solver = place.write_solver();
  const std::string net = place.file("net.prototxt");
  const std::vector<std::vector<std::string>> commands = {
      {"speedo", "train", "-solver", solver},
      {"speedo", "test", "-model", net, "-weights", "none"},
      {"speedo", "time", "-model", net},
      {"speedo", "run", "-solver", solver},
      {"speedo", "simulate", "--calibrate", "--solver", solver},
      {"speedo-worker", "--master", "127.0.0.1:1"}};
  for (const std::vector<std::string>& command : commands) {
    const auto fails = [&](const std::string& flag, const std::string& value,
                           const std::vector<std::string>& names) {
      std::vector<std::string> with_flag = command;
      with_flag.insert(with_flag.end(), {flag, value});
      expect_failure(place, with_flag, 2, names);
    };
    fails("--threads", "0", {"--threads", "from 1 to", "this process may use"});
    fails("--threads", "100000", {"--threads", "from 1 to", "'100000'"});
    fails("--cpu-isa", "avx1024", {"portable, avx2, avx512"});
    fails("--precision", "int4", {"f32, bf16"});
  }
  const auto fails = [&](const std::vector<std::string>& command,
                         const std::vector<std::string>& names) {
    expect_failure(place, command, 2, names);
  };
  fails({"speedo", "run", "-solver", solver, "--workers", "3", "--threads", "1"},
        {"--threads 1", "3 workers"});
  fails({"speedo-worker", "--master", "127.0.0.1:1", "--workers", "3", "--threads", "1"},
        {"--threads 1", "3 workers"});
  fails({"speedo", "run", "-solver", solver, "--workers", "1000", "--pin", "on"},
        {"--pin on", "1000 workers"});
  fails({"speedo", "run", "-solver", solver, "--pin", "perhaps"}, {"on, off, auto"});
}

TEST_CASE("A net that memory cannot hold is refused before training, with the figures") {
  Context place;
  std::string net = R"(name: "giant"
      layer { name: "data" type: "DummyData" top: "data" top: "label"
              dummy_data_param { shape { dim: 2 dim: 40000 } shape { dim: 2 }
                                 data_filler { type: "gaussian" }
                                 data_filler { type: "constant" } } })";
  std::string bottom = "data";
  for (int i = 0; i < 400; ++i) {  // 2.3 TiB of weights
    const std::string name = "ip" + std::to_string(i);
    net += "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" +
           name + "' inner_product_param { num_output: 40000 } }\n";
    bottom = name;
  }
  net += "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: '" + bottom +
         "' bottom: 'label' top: 'l' }";
  place.write("giant.prototxt", net);
  const std::string solver =
      place.write("giant_solver.prototxt", "net: \"" + place.file("giant.prototxt") +
                                               "\" max_iter: 2 base_lr: 0.1 lr_policy: 'fixed' "
                                               "snapshot_prefix: \"" + place.file("s") + "\"");
  for (const char* command : {"train", "run"}) {
    expect_failure(place, {"speedo", command, "-solver", solver}, 64,
                   {"memory does not suffice", "GiB", "weights", "solver history", "--force"});
  }
  const Outcome shown =
      place.run({"speedo", "net", "-model", place.file("giant.prototxt"), "--json"});
  REQUIRE(shown.exit_code == 0);
  CHECK(shown.json()["peak"]["train"]["weight_bytes"].get<double>() > 2e12);
  CHECK(place.run({"speedo", "train", "-solver", place.write_solver(), "--force"}).exit_code == 0);
}

TEST_CASE("Outputs are not overwritten unless asked for") {
  Context place;
  const std::string csv = place.write("a.csv", "1,2,0\n3,4,1\n");
  const std::string lmdb = place.file("a_lmdb");
  REQUIRE(place.run({"speedo", "convert", "csv", csv, lmdb}).exit_code == 0);
  expect_failure(place, {"speedo", "convert", "csv", csv, lmdb}, 73, {"a_lmdb", "--force"});
  CHECK(place.run({"speedo", "convert", "csv", csv, lmdb, "--force"}).exit_code == 0);
  expect_failure(place, {"speedo", "convert", "csv", csv, lmdb, "--force", "--test-output",
                         place.file("./a_lmdb/"), "--train-count", "1"},
                 2, {"a_lmdb", "another name"});
  expect_failure(place, {"speedo", "convert", "csv", csv, lmdb, "--parts", "2", "--test-output",
                         place.file("a_lmdb_1"), "--train-count", "1"},
                 2, {"a_lmdb_1", "another name"});
  const std::string mean = place.file("mean.binaryproto");
  REQUIRE(place.run({"speedo", "mean", lmdb, mean}).exit_code == 0);
  expect_failure(place, {"speedo", "mean", lmdb, mean}, 73,
                 {"mean.binaryproto", "exists already", "--force"});
  CHECK(place.run({"speedo", "mean", lmdb, mean, "--force"}).exit_code == 0);
}

TEST_CASE("A master does not start whose address file nobody could read") {
  Context place;
  expect_failure(place, {"speedo-master", "--solver", place.write_solver(), "--address-file",
                         "/nonexistent/address"},
                 73, {"/nonexistent/address", "No such file"});
}

TEST_CASE("Names that are not UTF-8 are shown in JSON with what is wrong replaced") {
  Context place;
  const std::string replaced = "\xef\xbf\xbd";
  const std::string net = place.write("net\xff.prototxt", R"(name: "a\377b" input: "data"
      input_shape { dim: 1 dim: 2 } layer { name: "\377" type: "ReLU" bottom: "data" top: "r" })");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"net", "--json", "--model", net},
        {"time", "--json", "--model", net, "--iterations", "1"},
        {"doctor", "--json", "--solver", "none\xff.prototxt"},
        {"run", "--dry-run", "--json", "--solver", "none\xff.prototxt"},
        {"config", "--json", "train", "--solver", "none\xff.prototxt"}}) {
    INFO(command.front());
    std::vector<std::string> line = {"speedo"};
    line.insert(line.end(), command.begin(), command.end());
    const Outcome outcome = place.run(line);
    CHECK(outcome.exit_code != 70);
    CHECK(outcome.json().dump().find(replaced) != std::string::npos);
  }
}

TEST_CASE("Schedules that contradict themselves, and malformed stages and groups") {
  Context place;
  const std::string solver = place.write_solver();
  const auto fails = [&](std::vector<std::string> flags, int code,
                         const std::vector<std::string>& names) {
    for (const std::string& program : {std::string("speedo"), std::string("speedo-master")}) {
      std::vector<std::string> command = {program};
      if (program == "speedo") command.emplace_back("run");
      command.insert(command.end(), {"--solver", solver});
      command.insert(command.end(), flags.begin(), flags.end());
      expect_failure(place, command, code, names);
    }
  };
  fails({"--workers", "4:2"}, 2, {"MIN is greater than MAX"});
  fails({"--movingRate", "1.5"}, 2, {"--moving-rate", "above 0 and at most 1"});
  fails({"--strategy", "easgd", "--moving-rate", "0"}, 2, {"--moving-rate", "above 0"});
  fails({"--strategy", "easgd", "--train", "0"}, 2, {"--train"});
  fails({"--sync", "--drop", "3"}, 2, {"--sync", "--drop"});
  fails({"--hybrid", "=maxIter", "5", "=sync", "==", "=movingRate", "2"}, 2, {"stage 2"});
  const std::string stages = place.write("stages.toml", "[[stage]]\nmax-iter = \n");
  fails({"--hybrid-file", stages}, 64, {"stages.toml:2:"});
  const std::string groups = place.write("groups", "worker0\nworker0\n");
  fails({"--groups", groups}, 64, {"groups:2:", "worker0"});
  const std::string strangers = place.write("strangers", "host1 host2\n");
  expect_failure(place, {"speedo", "run", "--solver", solver, "--groups", strangers}, 64,
                 {"host1", "worker0"});
  expect_failure(place,
                 {"speedo", "run", "--solver", solver, "--sync", "--workers", "2", "--shard-by",
                  "worker1=2,worker7=2"},
                 2, {"--shard-by", "'worker7'", "worker0 to worker1"});
}

TEST_CASE("Arguments that contradict each other, or say too little") {
  Context place;
  const auto fails = [&](const std::vector<std::string>& command, const std::string& what) {
    expect_failure(place, command, 2, {what});
  };
  fails({"speedo", "simulate", "--replay", "3", "--seeds", "1..2"}, "--seeds");
  fails({"speedo", "simulate", "--replay", "3", "--threads", "2"}, "--threads");
  fails({"speedo", "simulate", "--replay", "3", "--json"}, "--json");
  fails({"speedo", "run", "--max-iter", "3", "--maxIter", "4"},
        "--max-iter is given twice: give it once");
  fails({"speedo", "run", "--resume", "a.speedo"}, "write --resume=a.speedo");
  fails({"speedo", "run", "--resume="}, "needs a value");
  const std::string solver = place.write_solver();
  fails({"speedo", "run", "--solver", solver, "--codec", "xyz"}, "or auto");
  fails({"speedo", "convert"}, "'kind' is missing: idx, cifar, csv");
  fails({"speedo", "convert", "db", "a", "b", "--label", "first"}, "--label means nothing of db");
  fails({"speedo", "convert_imageset", "--seed", "5", "/", "list", "db"},
        "--seed means nothing without --shuffle");
  fails({"speedo", "export", "--format", "safetensors", "--weights", "w", "--output", "o",
         "--batch", "7"},
        "--batch means nothing without --model");
  fails({"speedo", "cert", "init", place.file("certs"), "--days", "3"},
        "--days means nothing with init");
  fails({"speedo", "cert", "issue", place.file("certs"), "node", "--names", "a"},
        "--names means nothing for a worker");
  fails({"speedo", "mean"}, "'input' is missing: Database or data file");
  fails({"speedo-master", "--solver", "s", "--redis", "redis://h:port"}, "port");
  fails({"speedo", "simulate", "--cluster", "c.toml", "--strategy", "sync", "--moving-rate", "0.1"},
        "--moving-rate");
}

TEST_CASE("Checkpoints that cannot be gone on from") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 10");
  REQUIRE(place.run({"speedo", "run", "--solver", solver}).exit_code == 0);
  const std::string record = place.file("snap_iter_10.speedo");
  REQUIRE(fs::exists(record));
  const auto fails = [&](const std::string& with, const std::string& from, int code,
                         const std::vector<std::string>& names) {
    expect_failure(place,
                   {"speedo", "run", "--solver", with, "--max-iter", "20", "--resume=" + from},
                   code, names);
  };
  fails(solver, place.file("nowhere.speedo"), 65, {"nowhere.speedo"});
  expect_failure(place,
                 {"speedo", "run", "--solver", solver, "--key-name", "other", "--resume=" + record},
                 78, {"job 'noise'", "'other'"});
  std::ofstream(place.file("snap_iter_10.caffemodel"), std::ios::app) << "x";
  fails(solver, record, 65, {"snap_iter_10.caffemodel", "bytes"});
  fs::resize_file(record, fs::file_size(record) - 1);
  fails(solver, record, 65, {"snap_iter_10.speedo", "truncated"});
  fs::resize_file(record, 3);
  fails(solver, record, 65, {"snap_iter_10.speedo", "truncated"});
  const Outcome anew =
      place.run({"speedo", "run", "--solver", solver, "--resume=auto", "--json"});
  CHECK(anew.exit_code == 0);
  CHECK(anew.json()["merges"] == 10);
  CHECK(anew.errors.find("skips " + record) != std::string::npos);
  place.write_net("net.prototxt", 17);
  fails(solver, record, 78, {"another net"});
}

}  // namespace
}  // namespace speedo::test
