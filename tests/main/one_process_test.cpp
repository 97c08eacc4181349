// The commands that work in one process: train, test, time, net, convert.

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "caffe.pb.h"
#include "data/model_files.hpp"
#include "main/command_support.hpp"
#include "support/event_records.hpp"
#include "support/poll.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("speedo train: Caffe's log on standard error, one JSON object on standard output") {
  Context place;
  const Outcome outcome = place.run({"speedo", "train", "-solver", place.write_solver(), "--json"});
  REQUIRE(outcome.exit_code == 0);
  const auto result = outcome.json();
  CHECK(result["iterations"] == 40);
  CHECK(result["merges"] == 40);
  CHECK(result["workers"] == 1);
  CHECK(result["accuracy"] == 1.0);
  CHECK(result["loss"].get<double>() < 0.5);
  CHECK(result["seconds"].get<double>() > 0.0);
  CHECK(result["images_per_second"].get<double>() > 0.0);
  CHECK(result["snapshot"] == place.file("snap_iter_40.caffemodel"));
  CHECK(result["compute_seconds"].get<double>() > 0.0);
  CHECK(result["data_wait_seconds"].get<double>() >= 0.0);
  CHECK(result["exchange_seconds"].is_null());
  CHECK(result["predicted_memory_bytes"].get<double>() > 1e6);
  CHECK(result["peak_memory_bytes"].get<double>() > 1e6);
  for (const char* line : {"] Use CPU.", "] Computing with ", " kernels, float32",
                           "] Memory predicted for this training: ",
                           " % of the time waiting for data, ",
                           "] Starting Optimization", "] Iteration 10 (", " iters), loss = ",
                           "]     Train net output #0: loss = ",
                           "]     Test net output #0: accuracy = ", "] Iteration 20, lr = 0.05",
                           "] Iteration 20, Testing net (#0)",
                           "] Snapshotting to binary proto file ", "] Optimization Done."}) {
    INFO(line);
    CHECK(outcome.errors.find(line) != std::string::npos);
  }
}

TEST_CASE("A resumed run ends with the very weights of an unbroken one") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 40 snapshot: 20");
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  const char* model = "snap_iter_40.caffemodel";
  const std::string unbroken = place.read(model);
  REQUIRE(unbroken.size() > 100);
  fs::remove(place.file(model));
  const Outcome resumed = place.run({"speedo", "train", "--solver", solver, "--snapshot",
                                     place.file("snap_iter_20.solverstate")});
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.errors.find("Resuming from") != std::string::npos);
  CHECK(place.read(model) == unbroken);
}

TEST_CASE("A training without a seed is gone on with by the one that was drawn for it") {
  Context place;
  const std::string fields = "max_iter: 40 snapshot: 20";
  std::string text = place.read(fs::path(place.write_solver(fields)).filename().string());
  const std::string seed = "random_seed: 3 ";
  text.erase(text.find(seed), seed.size());
  const std::string solver = place.write("solver.prototxt", text);
  REQUIRE(place.run({"speedo", "train", "--solver", solver}).exit_code == 0);
  const char* model = "snap_iter_40.caffemodel";
  const std::string unbroken = place.read(model);
  REQUIRE(unbroken.size() > 100);
  const std::string state = place.file("snap_iter_20.solverstate");
  for (const std::string& from : {"--resume=" + place.file("snap_iter_20.speedo"),
                                  std::string("--resume=auto"), "--snapshot=" + state}) {
    CAPTURE(from);
    for (const char* end : {"speedo", "caffemodel", "solverstate"}) {
      fs::remove(place.file(std::string("snap_iter_40.") + end));
    }
    const Outcome resumed = place.run({"speedo", "train", "--solver", solver, from});
    REQUIRE(resumed.exit_code == 0);
    CHECK(place.read(model) == unbroken);
    CHECK(resumed.errors.find("random_seed: ") != std::string::npos);
    CHECK(resumed.errors.find("has no random_seed") == std::string::npos);
  }
  fs::remove(place.file("snap_iter_20.speedo"));
  const Outcome alone = place.run({"speedo", "train", "--solver", solver, "--snapshot=" + state});
  REQUIRE(alone.exit_code == 0);
  CHECK(alone.errors.find("'" + state + "' has no random_seed beside it") != std::string::npos);
}

TEST_CASE("A limit on the size of files is an error of the write, and no signal ends the program") {
  Context place;
  const std::string net = place.write_net();
  // A pipe has no size.
  const Outcome limited = place.run(
      {"/bin/sh", "-c",
       "{ (ulimit -f 1; exec " + program("speedo") + " upgrade_net_proto_text " + net + " " +
           place.file("upgraded") + ") 2>&1; echo \"code $?\"; } | cat"});
  CHECK(limited.output.find("File too large") != std::string::npos);
  CHECK(limited.output.ends_with("code 73\n"));
}

TEST_CASE("Room is asked for the snapshots that are still to come") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 2 snapshot: 1");
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  caffe::SolverState state;
  REQUIRE(state.ParseFromString(place.read("snap_iter_2.solverstate")));
  state.set_iter(2147483646);
  const std::string late = place.write("late.solverstate", state.SerializeAsString());
  const Outcome resumed =
      place.run({"speedo", "train", "-solver",
                 place.write_solver("max_iter: 2147483647 snapshot: 1"), "-snapshot", late});
  INFO(resumed.errors);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.errors.find("Room for snapshots: ") != std::string::npos);
  CHECK(resumed.errors.find("too little for the ") == std::string::npos);
}

TEST_CASE("A net with a long name is trained, alone and by a cluster") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 2 snapshot: 1");
  std::string net = place.read("net.prototxt");
  net.replace(net.find("noise"), 5, std::string(300, 'n'));
  place.write("net.prototxt", net);
  for (const char* command : {"train", "run"}) {
    INFO(command);
    const Outcome outcome = place.run({"speedo", command, "-solver", solver});
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 0);
    const Outcome resumed =
        place.run({"speedo", command, "-solver", solver, "--resume=auto", "--max-iter", "3"});
    INFO(resumed.errors);
    CHECK(resumed.exit_code == 0);
    CHECK(resumed.errors.find("iteration 2") != std::string::npos);
  }
}

// Whether a line of the text begins so.
bool has_line(const std::string& text, const std::string& beginning) {
  return text.starts_with(beginning) || text.find("\n" + beginning) != std::string::npos;
}

TEST_CASE("Names in a net neither move the cursor nor begin a line of the log") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 10");
  std::string net = place.read("net.prototxt");
  const auto replace_all = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = net.find(from, at)) != std::string::npos; at += to.size()) {
      net.replace(at, from.size(), to);
    }
  };
  const std::string forged = "I20260101 00:00:00.000000 1 forged.cpp:1] all is well";
  replace_all("\"loss\"", R"("\033[31m\n)" + forged + "\"");
  replace_all("\"ip2\"", R"("ip\r\n)" + forged + "\"");
  replace_all("\"noise\"", R"("net\033]0;\007\n)" + forged + "\"");
  place.write("net.prototxt", net);
  for (const char* command : {"train", "run"}) {
    INFO(command);
    const Outcome outcome = place.run({"speedo", command, "-solver", solver});
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.errors.find('\033') == std::string::npos);
    CHECK(outcome.errors.find('\r') == std::string::npos);
    CHECK_FALSE(has_line(outcome.errors, forged));
  }
  replace_all("type: \"ReLU\"", R"(type: "Re\033[31m\n)" + forged + "\"");
  place.write("net.prototxt", net);
  const Outcome refused = place.run({"speedo", "train", "-solver", solver});
  CHECK(refused.exit_code == 64);
  CHECK(refused.errors.find('\033') == std::string::npos);
  CHECK_FALSE(has_line(refused.errors, forged));
}

TEST_CASE("HDF5 snapshots are resumed as well") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 40 snapshot: 20 snapshot_format: HDF5");
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  const Outcome resumed = place.run({"speedo", "train", "-solver", solver, "-snapshot",
                                     place.file("snap_iter_20.solverstate.h5"), "--json"});
  INFO(resumed.errors);
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.json()["merges"] == 20);
}

// The parameters of a model file. Two HDF5 files of the same values may differ in their times.
std::vector<std::string> parameters_in(const std::string& file) {
  const auto model = read_model(file);
  REQUIRE(model);
  std::vector<std::string> blobs;
  for (const caffe::LayerParameter& layer : model->layer()) {
    for (const caffe::BlobProto& blob : layer.blobs()) blobs.push_back(blob.SerializeAsString());
  }
  REQUIRE(blobs.size() == 4);
  return blobs;
}

TEST_CASE("Adam and AdaDelta go on from their state files, and from no other type's") {
  Context place;
  const char* model = "snap_iter_40.caffemodel";
  for (const std::string type : {"Adam", "AdaDelta"}) {
    for (const std::string end : {"", ".h5"}) {
      INFO(type << end);
      const std::string fields = "max_iter: 40 snapshot: 20 type: \"" + type + "\"" +
                                 (end.empty() ? "" : " snapshot_format: HDF5");
      const std::string solver = place.write_solver(fields);
      REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
      const std::vector<std::string> unbroken = parameters_in(place.file(model + end));
      fs::remove(place.file(model + end));
      const std::string state = place.file("snap_iter_20.solverstate" + end);
      const Outcome resumed =
          place.run({"speedo", "train", "--solver", solver, "--snapshot", state});
      INFO(resumed.errors);
      REQUIRE(resumed.exit_code == 0);
      CHECK((parameters_in(place.file(model + end)) == unbroken));
    }
  }
  const std::string adam = place.write_solver("max_iter: 40 type: \"Adam\"", "adam.prototxt");
  const std::string sgd = place.write_solver("max_iter: 40", "sgd.prototxt");
  const std::string state = place.file("snap_iter_20.solverstate.h5");
  const auto refused = [&](const std::string& solver, const std::string& flag,
                           const std::string& file, const std::string& word) {
    const Outcome outcome = place.run({"speedo", "train", "--solver", solver, flag + "=" + file});
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.error_line().find(word) != std::string::npos);
  };
  refused(adam, "--snapshot", state, "\"AdaDelta\"");
  refused(sgd, "--resume", place.file("snap_iter_20.speedo"), "\"AdaDelta\"");
  // Caffe's files say nothing of a type; how many histories there are does.
  fs::remove(place.file("snap_iter_20.speedo"));
  refused(sgd, "--snapshot", state, "8 history blobs");
}

// The last iteration that the log names.
std::uint64_t last_iteration(const Process& process) {
  const std::string text = process.errors(), before = "Iteration ";
  const std::size_t at = text.rfind(before);
  if (at == std::string::npos) return 0;
  return std::strtoull(text.c_str() + at + before.size(), nullptr, 10);
}

TEST_CASE("SIGINT stops training with a snapshot") {
  Context place;
  Process process = place.start(
      {"speedo", "train", "-solver", place.write_solver("max_iter: 100000000"), "--json"});
  REQUIRE(process.says("Iteration 10 ("));
  process.signal(SIGINT);
  const Outcome outcome = Context::finish(process);
  CHECK(outcome.exit_code == 0);
  const std::string snapshot = outcome.json()["snapshot"];
  CHECK(fs::exists(snapshot));
}

TEST_CASE("The second signal ends training at once, without a snapshot") {
  // One iteration of so many passes lasts for days: a clean stop, between iterations, never comes.
  Context place;
  const std::string solver =
      place.write_solver("max_iter: 1 iter_size: 2000000000 test_initialization: false");
  for (const int second : {SIGINT, SIGTERM}) {
    Process process = place.start({"speedo", "train", "-solver", solver});
    REQUIRE(process.says("Starting Optimization"));
    process.signal_and_wait(SIGINT);
    CHECK(process.running());
    poll_until([&] {  // The first ones may come so soon that they are one with the other.
      process.signal(second);
      return !process.running();
    });
    CHECK(process.wait() == 128 + second);
    CHECK(process.errors().find("Snapshotting") == std::string::npos);
    for (const auto& entry : fs::directory_iterator(place.folder())) {
      CHECK(entry.path().filename().string().find("snap_iter") != 0);
    }
  }
}

TEST_CASE("Signals that come together, as timeout sends them, are one request to stop") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 100000000 snapshot_after_train: false");
  for (const char* command : {"train", "run"}) {
    for (const int second : {SIGINT, SIGTERM}) {
      INFO(command << " " << second);
      Process process = place.start(
          {"speedo", command, "-solver", solver, "--sigint-effect", "stop", "--json"});
      REQUIRE(process.says("Iteration 10 ("));
      process.signal(SIGTERM);
      process.signal(second);
      const Outcome outcome = Context::finish(process);
      INFO(outcome.errors);
      REQUIRE(outcome.exit_code == 0);
      CHECK(fs::exists(outcome.json()["snapshot"].get<std::string>()));
    }
  }
}

TEST_CASE("A SIGINT that shall have no effect has none") {
  Context place;
  Process process = place.start({"speedo", "train", "-solver",
                                 place.write_solver("max_iter: 100000000"), "-sigint_effect",
                                 "none"});
  REQUIRE(process.says("Iteration 10 ("));
  for (int i = 0; i < 2; ++i) {
    process.signal_and_wait(SIGINT);
    const std::uint64_t then = last_iteration(process);
    CHECK(process.says("Iteration " + std::to_string(then + 100) + " ("));
  }
  CHECK(process.running());
  process.signal(SIGTERM);
  CHECK(process.wait() == 0);
}

TEST_CASE("SIGHUP takes a snapshot and training goes on") {
  Context place;
  Process process =
      place.start({"speedo", "train", "-solver", place.write_solver("max_iter: 100000000")});
  REQUIRE(process.says("Iteration 10 ("));
  process.signal(SIGHUP);
  REQUIRE(process.says("Snapshotting"));
  CHECK(process.running());
  process.signal(SIGTERM);
  CHECK(process.wait() == 0);
}

TEST_CASE("Fine-tuning, then scoring the result") {
  Context place;
  const std::string solver = place.write_solver();
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  const std::string model = place.file("snap_iter_40.caffemodel");
  const Outcome tuned = place.run(
      {"speedo", "train", "-solver", solver, "-weights", model, "--max-iter", "20", "--json"});
  REQUIRE(tuned.exit_code == 0);
  CHECK(tuned.errors.find("Finetuning from " + model) != std::string::npos);

  const Outcome scored = place.run({"speedo", "test", "-model", place.file("net.prototxt"),
                                    "-weights", model, "-iterations", "3", "--json"});
  REQUIRE(scored.exit_code == 0);
  const auto result = scored.json();
  CHECK(result["iterations"] == 3);
  CHECK(result["accuracy"] == 1.0);
  for (const char* line : {"] Running for 3 iterations.", "] Batch 0, accuracy = 1",
                           "] Batch 2, loss = ", "] Loss: ", "] accuracy = 1\n", "] loss = "}) {
    INFO(line);
    CHECK(scored.errors.find(line) != std::string::npos);
  }
}

TEST_CASE("speedo time: each layer forward and backward") {
  Context place;
  const Outcome outcome =
      place.run({"speedo", "time", "-model", place.write_net(), "-iterations", "3", "--json"});
  REQUIRE(outcome.exit_code == 0);
  const auto result = outcome.json();
  CHECK(result["iterations"] == 3);
  CHECK(result["layers"].size() == 5);
  CHECK(result["layers"][1]["name"] == "ip1");
  CHECK(result["layers"][1]["forward_ms"].get<double>() > 0.0);
  CHECK(result["layers"][1]["backward_ms"].get<double>() > 0.0);
  for (const char* line :
       {"] *** Benchmark begins ***", "]        ip1\tforward: ", "]        ip1\tbackward: ",
        "] Average Forward pass: ", "] Average Forward-Backward: ", "] Total Time: "}) {
    INFO(line);
    CHECK(outcome.errors.find(line) != std::string::npos);
  }
}

TEST_CASE("speedo net tells how large a worker's state is that --snapshot-workers writes") {
  Context place;
  const auto object =
      place.run({"speedo", "net", "--model", place.write_net(), "--json"}).json()["worker_state"];
  const std::string solver = place.write_solver("max_iter: 2 snapshot: 2");
  const auto written = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> command = {"speedo", "run", "-solver", solver, "--workers", "1",
                                        "--snapshot-workers"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome run = place.run(command);
    INFO(run.errors);
    REQUIRE(run.exit_code == 0);
    return static_cast<std::int64_t>(
        std::filesystem::file_size(place.file("snap_iter_2.worker0")));
  };
  // A head beside the numbers.
  const auto check = [](std::int64_t bytes, const nlohmann::json& told) {
    CHECK(bytes > told.get<std::int64_t>());
    CHECK(bytes < told.get<std::int64_t>() + 400);
  };
  CHECK(object["SGD"]["full_delta_bytes"].get<int>() >= 276 * 4);
  check(written({}), object["SGD"]["full_delta_bytes"]);
  check(written({"--strategy", "easgd", "--moving-rate", "0.5"}), object["SGD"]["elastic_bytes"]);
  const Outcome text = place.run({"speedo", "net", "--model", place.write_net()});
  CHECK(text.output.find("A worker's state, with --snapshot-workers:") != std::string::npos);
}

TEST_CASE("speedo net: shapes, parameters and memory of a phase") {
  Context place;
  const std::string model = place.write_net();
  const auto test = place.run({"speedo", "net", "--model", model, "--phase", "TEST", "--json"});
  const auto object = test.json();
  CHECK(object["name"] == "noise");
  CHECK(object["blobs"]["ip1"] == nlohmann::json({8, 16}));
  CHECK(object["blobs"].contains("accuracy"));
  CHECK(object["params"]["ip1"] == nlohmann::json({{16, 12}, {16}}));
  CHECK(object["params"].size() == 2);
  CHECK(object["parameter_count"] == 16 * 12 + 16 + 4 * 16 + 4);
  CHECK(object["memory"] == object["peak"]["test"]);
  CHECK(object["memory"]["total_bytes"].get<int>() > 0);
  CHECK(object["memory"]["history_bytes"] == 0);
  CHECK(object["memory"]["weight_grad_bytes"] == 0);
  CHECK(object["peak"]["train"]["history_bytes"] == object["peak"]["train"]["weight_bytes"]);
  CHECK(object["peak"]["train"]["weight_bytes"].get<int>() >= 276 * 4);
  const auto train = place.run({"speedo", "net", "-model", model, "-phase", "TRAIN", "--json"});
  CHECK_FALSE(train.json()["blobs"].contains("accuracy"));
  const std::string table = place.run({"speedo", "net", "-model", model}).output;
  CHECK(table.find("InnerProduct") != std::string::npos);
  CHECK(place.run({"speedo", "net", "-model", model, "--json"}).json()["blobs"] ==
        train.json()["blobs"]);
  CHECK(table.find("276 parameters") != std::string::npos);
  CHECK(table.find("Memory at the peak, TRAIN: ") != std::string::npos);
  CHECK(table.find("Memory at the peak, TEST: ") != std::string::npos);
}

TEST_CASE("A database is made from a table, in parts, and its mean from the database") {
  Context place;
  std::string table;
  for (int i = 0; i < 10; ++i) {
    table += std::to_string(i) + "," + std::to_string(2 * i) + "," + std::to_string(i % 2) + "\n";
  }
  const std::string csv = place.write("a.csv", table);
  const Outcome outcome = place.run({"speedo", "convert", "csv", csv, place.file("train.datumfile"),
                                     "--backend", "datumfile", "--shape", "1,1,2", "--test-output",
                                     place.file("test.datumfile"), "--train-count", "7"});
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.output.empty());
  CHECK(outcome.errors.find("Wrote 7 records") != std::string::npos);
  CHECK(outcome.errors.find("Wrote 3 records") != std::string::npos);
  CHECK(place.run({"speedo", "convert", "db", place.file("train.datumfile"), place.file("again")})
            .exit_code == 0);
  CHECK(place.run({"speedo", "mean", place.file("again"), place.file("mean")}).exit_code == 0);
}

TEST_CASE("--tensorboard leaves the curves of a training, of one process and of a cluster") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 20");
  const auto tags_of = [&](const std::string& folder) {
    std::map<std::string, int> tags;
    std::int64_t last = 0;
    for (const tensorboard::Event& event : events_in(place.file(folder))) {
      for (const auto& value : event.summary().value()) ++tags[value.tag()];
      last = std::max<std::int64_t>(last, event.step());
    }
    CHECK(last == 20);
    return tags;
  };
  REQUIRE(place.run({"speedo", "train", "--solver", solver, "--tensorboard", place.file("one")})
              .exit_code == 0);
  const std::map<std::string, int> one = tags_of("one");
  CHECK(one.at("train/loss") == 20);
  CHECK(one.at("test/accuracy") >= 1);
  REQUIRE(place.run({"speedo", "run", "--solver", solver, "--workers", "2", "--sync",
                     "--tensorboard", place.file("many")})
              .exit_code == 0);
  const std::map<std::string, int> many = tags_of("many");
  CHECK(many.at("train/loss") >= 1);
  CHECK(many.at("test/accuracy") >= 1);
}

// The iterations of a curve's lines with a loss, and of those of tests.
struct CurveLines {
  std::vector<int> losses, tests;
};
CurveLines curve_in(const std::string& text) {
  CurveLines found;
  std::istringstream lines(text);
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line == "iteration,seconds,loss,accuracy,test_loss,rate,workers,staleness");
  double seconds = 0.0;
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream row(line + ",");
    for (std::string field; std::getline(row, field, ',');) fields.push_back(field);
    REQUIRE(fields.size() == 8);
    CHECK(std::stod(fields[1]) >= seconds);
    seconds = std::stod(fields[1]);
    (fields[2].empty() ? found.tests : found.losses).push_back(std::stoi(fields[0]));
    CHECK(fields[2].empty() != fields[3].empty());
  }
  return found;
}

TEST_CASE("--curve leaves one table of a training, through a resume, and of a cluster") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 40 snapshot: 10");
  const std::string curve = place.file("curve.csv");
  const auto train = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"speedo", "train", "--solver", solver, "--curve", curve});
    const Outcome outcome = place.run(flags);
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
  };
  train({"--max-iter", "25"});
  const CurveLines first = curve_in(place.read("curve.csv"));
  CHECK(first.losses == std::vector<int>{10, 20, 25});
  train({"--snapshot", place.file("snap_iter_20.solverstate")});
  const CurveLines whole = curve_in(place.read("curve.csv"));
  CHECK(whole.losses == std::vector<int>{10, 20, 30, 40});
  CHECK(whole.tests == std::vector<int>{0, 20, 40});
  CHECK(place.run({"speedo", "train", "--solver", solver, "--curve", solver}).exit_code == 65);

  const Outcome cluster =
      place.run({"speedo", "run", "--solver", place.write_solver("max_iter: 40", "c.prototxt"),
                 "--workers", "2", "--sync", "--curve", place.file("many.csv")});
  INFO(cluster.errors);
  REQUIRE(cluster.exit_code == 0);
  const CurveLines many = curve_in(place.read("many.csv"));
  REQUIRE_FALSE(many.losses.empty());
  CHECK(many.losses.back() == 40);
  CHECK(many.tests.back() == 40);
}

}  // namespace
}  // namespace speedo::test
