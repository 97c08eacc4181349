// A deterministic job that is interrupted ends with the very bits of one that is not.
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <list>
#include <string_view>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/long_runs.hpp"
#include "support/poll.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

#include <speedo/base/random.hpp>
#include <speedo/store/redis_store.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Process;

// Enough that two deaths fall into it. In shared memory a round takes half a millisecond, and the
// store has a version each second.
constexpr std::uint64_t kIterations = 500, kIterationsInMemory = 4000;
constexpr int kRecords = 512;
constexpr int kRecordBytes = 1 + 3 * 32 * 32;  // CIFAR-10's format

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A job with everything that chance has a part in: order, crops, mirroring, dropout.
class Job {
 public:
  Job(const std::string& rule, std::uint64_t iterations, bool shares_memory)
      : rule_(rule), iterations_(iterations), shares_memory_(shares_memory) {
    Random random(11);
    std::ofstream data(folder_ / "data.bin", std::ios::binary);
    for (int record = 0; record < kRecords; ++record) {
      data.put(static_cast<char>(random.below(10)));
      for (int i = 1; i < kRecordBytes; ++i) data.put(static_cast<char>(random.below(256)));
    }
    std::ofstream(folder_ / "solver.prototxt")
        << R"(base_lr: 0.01 lr_policy: "step" gamma: 0.5 stepsize: 150 momentum: 0.9
              weight_decay: 0.001 random_seed: 5 display: 20 max_iter: )"
        << iterations << " snapshot_prefix: \"" << (folder_ / "snap").string() << "\"\n"
        << R"(net_param { name: "bits"
            layer { name: "data" type: "Data" top: "data" top: "label"
                    data_param { source: "data.bin" batch_size: 8 }
                    transform_param { scale: 0.0039 crop_size: 16 mirror: true } }
            layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
                    inner_product_param { num_output: 32 weight_filler { type: "xavier" } } }
            layer { name: "relu" type: "ReLU" bottom: "ip1" top: "ip1" }
            layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
            layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
                    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
            layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label"
                    top: "loss" } })";
  }

  Process& start_master(bool resume) {
    std::vector<std::string> command{
        test::program("speedo-master"), "--solver", (folder_ / "solver.prototxt").string(),
        "--redis", redis_.tcp_uri(), "--port", port_.text(), "--workers", "2", "--deterministic",
        "--strategy", rule_ == "elastic" ? "sync-easgd" : "sync", "--json"};
    if (rule_ == "gradient" || rule_ == "replicated") {
      command.emplace_back("--gradient-only");
      if (rule_ == "replicated") command.insert(command.end(), {"--replicated", "--no-factors"});
    } else if (keeps_states()) {
      command.insert(command.end(),
                     {"--train", "2", "--snapshot-workers", "--snapshot-interval", "40"});
      if (rule_ == "elastic") command.insert(command.end(), {"--moving-rate", "0.2"});
    } else {
      command.insert(command.end(), {"--train", "3", "--save-updater", "average"});
    }
    if (resume) command.emplace_back(keeps_states() ? "--resume=auto" : "--resume");
    if (!shares_memory_) command.emplace_back("--no-shared-memory");
    processes_.emplace_back(std::move(command), folder_ / ("log" + std::to_string(logs_++)));
    return processes_.back();
  }
  Process& start_worker() {
    processes_.emplace_back(std::vector<std::string>{test::program("speedo-worker"), "--master",
                                                     port_.address(), "--data-root",
                                                     folder_.path().string()},
                            folder_ / ("log" + std::to_string(logs_++)));
    return processes_.back();
  }
  std::vector<Process*> start_workers() { return {&start_worker(), &start_worker()}; }
  std::uint64_t version() {
    const auto store = open_redis_store(parse_redis_uri(redis_.tcp_uri()).value(), "bits").value();
    const auto weights = store->read(weights_key());
    return weights ? (*weights)->info().version : 0;
  }
  void empty_store() { redis_.restart(); }
  bool version_beyond(std::uint64_t version_wanted) {
    for (int i = 0; i < 12000; ++i) {
      if (version() > version_wanted) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return false;
  }
  std::string snapshot(const char* ending) const {
    return bytes_of(folder_ / ("snap_iter_" + std::to_string(iterations_) + ending));
  }
  // What follows the model's name, which is another in each folder.
  std::string histories() const {
    const std::string state = snapshot(".solverstate");
    return state.substr(state.find(".caffemodel"));
  }

 private:
  bool keeps_states() const { return rule_ == "states" || rule_ == "elastic"; }

  const std::string rule_;
  const std::uint64_t iterations_;
  const bool shares_memory_;
  TempDir folder_;
  test::RedisServer redis_;
  const test::ReservedPort port_;
  std::list<Process> processes_;
  int logs_ = 0;
};

bool said(const Process& process, const char* what) {
  return process.errors().find(what) != std::string::npos;
}

// That it has said last.
std::uint64_t iteration_of(const Process& master) {
  constexpr std::string_view kWord = "Iteration ";
  const std::string log = master.errors();
  const std::size_t last = log.rfind(kWord);
  return last == std::string::npos ? 0 : std::strtoull(&log[last + kWord.size()], nullptr, 10);
}

void run_through(Job& whole) {
  Process& master = whole.start_master(false);
  whole.start_workers();
  const auto code = master.wait(std::chrono::seconds{120});
  INFO("undisturbed: " << master.errors());
  REQUIRE(code == 0);
}

}  // namespace

TEST_CASE("a deterministic job whose master and worker are killed has the bits of one that ran "
          "through: one in shared memory, one through Redis or by replicas") {
  std::vector<std::string> rules = {"gradient", "average", "replicated"};
  // One of the last two, in long runs both.
  if (!test::is_long()) rules.erase(rules.begin() + 1 + static_cast<int>(test::seed() % 2));
  for (const std::string& rule : rules) {
    const bool in_memory = rule == "gradient";
    const std::uint64_t iterations = in_memory ? kIterationsInMemory : kIterations;
    Job whole(rule == "replicated" ? "gradient" : rule, iterations, !in_memory);
    run_through(whole);
    REQUIRE_FALSE(whole.snapshot(".caffemodel").empty());
    for (const int round : test::rounds(1)) {
      Random random = Random::derive(test::seed(), {5, static_cast<std::uint64_t>(round)});
      CAPTURE(test::seed(), rule, round);
      Job job(rule, iterations, in_memory);
      Process* master = &job.start_master(false);
      const std::vector<Process*> workers = job.start_workers();
      const std::uint64_t first = random.below(2);
      for (std::uint64_t death = 0; death < 2; ++death) {
        const std::uint64_t when = (death + 1) * iterations / 4 + random.below(iterations / 5);
        test::poll_until([&] { return iteration_of(*master) >= when; });
        Process& dies = death == first ? *master : *workers[random.below(2)];
        dies.signal(SIGKILL);
        dies.wait();
        if (death == first) {
          master = &job.start_master(true);
        } else {
          test::poll_until([&] { return said(*master, "training pauses"); });
          job.start_worker();
        }
      }
      const auto end = master->wait(std::chrono::seconds{120});
      INFO("resumed: " << master->errors());
      REQUIRE(end == 0);
      const bool same_weights = job.snapshot(".caffemodel") == whole.snapshot(".caffemodel");
      CHECK(same_weights);
      const bool same_histories = job.histories() == whole.histories();
      CHECK(same_histories);
    }
  }
}

TEST_CASE("a deterministic job whose store is emptied has the bits of one that ran through") {
  const std::string rule = test::seed() % 2 == 0 ? "gradient" : "average";
  Job whole(rule, kIterations, false);
  run_through(whole);
  Random random = Random::derive(test::seed(), {8});
  CAPTURE(test::seed(), rule);
  Job job(rule, kIterations, false);
  Process& master = job.start_master(false);
  job.start_workers();
  const auto has_lost = [&] { return said(master, "its run is done again"); };
  for (int i = 0; i < 60 && !has_lost(); ++i) {
    REQUIRE(job.version_beyond(random.below(5)));  // not before it is back
    std::this_thread::sleep_for(std::chrono::milliseconds{random.below(20)});
    job.empty_store();
  }
  const auto end = master.wait(std::chrono::seconds{120});
  INFO("emptied: " << master.errors());
  REQUIRE(end == 0);
  CHECK(has_lost());
  const bool same_weights = job.snapshot(".caffemodel") == whole.snapshot(".caffemodel");
  CHECK(same_weights);
  const bool same_histories = rule != "gradient" || job.histories() == whole.histories();
  CHECK(same_histories);
}

// A master alone dies, then everybody.
TEST_CASE("what workers have alone, momentum and elastic weights, goes on with --snapshot-workers: "
          "a job whose processes are killed has the bits of one that ran through") {
  constexpr std::uint64_t kMerges = 400;
  const std::string rule = GENERATE("states", "elastic");
  Job whole(rule, kMerges, false);
  run_through(whole);
  Random random = Random::derive(test::seed(), {6});
  CAPTURE(test::seed(), rule);
  Job job(rule, kMerges, false);
  Process* master = &job.start_master(false);
  std::vector<Process*> workers = job.start_workers();
  for (const bool all : {false, true}) {
    // The snapshot of iteration 40 is whole before that of 80 begins.
    REQUIRE(job.version_beyond(90 + random.below(100)));
    master->signal(SIGKILL);
    master->wait();
    for (Process* worker : all ? workers : std::vector<Process*>{}) {
      worker->signal(SIGKILL);
      worker->wait();
    }
    master = &job.start_master(true);
    if (all) job.start_workers();
    const bool starts = master->says("training starts", std::chrono::seconds{30});
    INFO("after a death: " << master->errors());
    REQUIRE(starts);
    CHECK(master->says("the states of 2 workers; going on from the files"));
  }
  const auto end = master->wait(std::chrono::seconds{120});
  INFO("resumed: " << master->errors());
  REQUIRE(end == 0);
  for (const char* file : {".caffemodel", ".worker0", ".worker1"}) {
    CAPTURE(file);
    CHECK_FALSE(whole.snapshot(file).empty());
  }
  const bool same_weights = job.snapshot(".caffemodel") == whole.snapshot(".caffemodel");
  CHECK(same_weights);
}

}  // namespace speedo
