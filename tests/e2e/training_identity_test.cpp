// A job trained to its end, trained again over the same files, whose master dies: --resume=auto
// goes on with the training that died, not with the one before.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Arguments;
using test::Cluster;
using test::Process;

constexpr std::uint64_t kInterval = 50;  // of checkpoint files

struct RepeatedJob {
  const char* name;
  std::uint64_t iterations;
  Arguments flags;
};
const RepeatedJob kRepeatedJobs[] = {
    {"async", 700, {}},
    {"sync", 350, {"--sync"}},
    {"easgd", 700, {"--strategy", "easgd", "--moving-rate", "0.25", "--train", "2"}},
};
// What happens between the master's death and its successor.
enum class Between { kNothing, kStoreEmptied, kOtherJobs };

// Waits for a checkpoint file: the first one may be late where processors are busy.
bool has_checkpoint_since(const Cluster& cluster, std::filesystem::file_time_type start) {
  const auto is_new = [&](const std::filesystem::directory_entry& entry) {
    std::error_code gone;
    return entry.path().extension() == ".speedo" && entry.last_write_time(gone) > start && !gone;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::filesystem::directory_iterator folder(cluster.file("snap").parent_path());
    if (std::any_of(begin(folder), end(folder), is_new)) return true;
    test::sleep_ms(10);
  }
  return false;
}

void require_success(Process& process) {
  const auto code = process.wait(std::chrono::seconds{120});
  INFO(process.errors());
  REQUIRE(code == 0);
}

void train_to_the_end(Cluster& cluster, const Arguments& flags) {
  Process& master = cluster.start_master(flags);
  Process& worker = cluster.start_worker(cluster.address(), {"--workers", "2"});
  require_success(master);
  require_success(worker);
}

// Another job's master and worker, at work in the same Redis, and not with all of the processors.
void start_another_job(Cluster& cluster, const std::string& name) {
  cluster.start_master(
      {"--key-name", name, "--workers", "1", "--max-iter", "1000000", "--snapshot-interval", "0"});
  cluster.start_worker(cluster.address(), {"--emulate-compute", "3"});
}

void try_job(const RepeatedJob& job, Between between, Random& random) {
  Cluster cluster(job.iterations);
  const test::ReservedPort reserved;
  const std::string port = reserved.text();
  const Arguments flags =
      test::joined(job.flags, Arguments{"--workers", "2", "--port", port, "--snapshot-interval",
                                        std::to_string(kInterval)});
  train_to_the_end(cluster, flags);
  if (between == Between::kOtherJobs) {
    start_another_job(cluster, "one");
    start_another_job(cluster, "two");
  }
  const auto start = std::filesystem::file_time_type::clock::now();
  Process& second = cluster.start_master(flags);
  Process& workers = cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(second.says("training starts"));
  REQUIRE(has_checkpoint_since(cluster, start));
  REQUIRE(cluster.gets_beyond(kInterval + random.below(job.iterations / 3)));
  const std::uint64_t before = cluster.stored_iteration();
  second.signal(SIGKILL);
  REQUIRE(second.wait() == 128 + SIGKILL);
  const std::uint64_t died_at = cluster.stored_iteration();
  if (between == Between::kStoreEmptied) cluster.redis().restart();  // without its data
  Process& third = cluster.start_master(test::joined(flags, Arguments{"--resume=auto"}));
  require_success(third);
  const std::uint64_t from = test::resumed_from(third);
  INFO(third.errors());
  CHECK(from <= died_at);
  CHECK(from + (between == Between::kStoreEmptied ? 2 * kInterval : 0) >= before);
  CHECK(Cluster::result(third)["iterations"] == job.iterations);
  require_success(workers);
}

}  // namespace

// In each round every job meets one of the three; in three rounds all.
TEST_CASE("a training resumed after an earlier one over the same files goes on from where it was") {
  constexpr Between kAll[] = {Between::kNothing, Between::kStoreEmptied, Between::kOtherJobs};
  for (const int round : test::rounds(1)) {
    for (std::size_t i = 0; i < std::size(kRepeatedJobs); ++i) {
      const Between between = kAll[(i + static_cast<std::size_t>(round)) % std::size(kAll)];
      CAPTURE(test::seed(), round, kRepeatedJobs[i].name, static_cast<int>(between));
      Random random = Random::derive(test::seed(), {5, static_cast<std::uint64_t>(round)});
      try_job(kRepeatedJobs[i], between, random);
    }
  }
}

TEST_CASE("with nothing left to train a resumed master still takes its workers with it") {
  Cluster cluster(1500);
  const test::ReservedPort reserved;
  const std::string port = reserved.text();
  const Arguments flags{"--workers", "2", "--port", port};
  Process& first = cluster.start_master(flags);
  Process& workers = cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(cluster.counts_beyond(10));
  first.signal(SIGKILL);
  first.wait();
  SECTION("by the store's word, though it was away from its master's address") {
    Process& elsewhere = cluster.start_master({"--workers", "1", "--resume", "--max-iter", "5"});
    require_success(elsewhere);
  }
  SECTION("by a master that comes for the end alone") {
    const Arguments finished{"--resume=auto", "--max-iter", "5"};
    require_success(cluster.start_master(test::joined(flags, finished)));
  }
  require_success(workers);
}

TEST_CASE("--resume=auto says what it found and what it chose") {
  Cluster cluster(200);
  const Arguments flags{"--workers", "1", "--snapshot-interval", "50"};
  const auto resume = [&](const Arguments& extra) {
    Process& master =
        cluster.start_master(test::joined(flags, test::joined(extra, {"--resume=auto"})));
    const std::string address = cluster.address();
    Process& worker = cluster.start_worker(address);
    require_success(master);
    worker.signal(SIGKILL);
    worker.wait();
    return master.errors();
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  Process& first = cluster.start_master(flags);
  Process& worker = cluster.start_worker(cluster.address());
  require_success(first);
  require_success(worker);

  SECTION("files of the same training, of the same iteration as the store") {
    contains(resume({}), "has iteration 200 in the store and 200 in the files; going on from the "
                         "store's weights, which are the same");
  }
  SECTION("files of a later iteration than the store") {
    cluster.redis().restart();
    const std::string text = resume({});
    contains(text, "the store has nothing of this job; going on from the files");
    contains(text, "snap_iter_200.speedo, iteration 200");
  }
  SECTION("files of another training, a new one that has none, and an empty store") {
    Process& second = cluster.start_master(flags);
    cluster.address();
    second.signal(SIGKILL);
    second.wait();
    cluster.redis().restart();
    const std::string text = resume({});
    contains(text, "leaves out 4 checkpoint files, the newest of which is");
    contains(text, "of another training than this job's");
    CHECK(test::resumed_from_or_zero(text) == 0);
  }
  SECTION("files of a training that nothing here knows, and an empty store") {
    std::filesystem::remove(cluster.file("snap.count.training"));
    cluster.redis().restart();
    contains(resume({}), "(no training of this job is known here)");
  }
  SECTION("files that a training in one process has gone on with") {
    std::string named;
    const auto training = [&] {
      std::ifstream file(cluster.file("snap.count.training"));
      std::getline(file, named);
      return named;
    };
    const std::string before = training();
    Process alone({test::program("speedo"), "train", "--solver",
                   cluster.file("solver.prototxt").string(), "--max-iter", "300", "--resume=auto"},
                  cluster.file("alone"));
    require_success(alone);
    contains(resume({"--max-iter", "400"}),
             "has iteration 200 in the store and 300 in the files; going on from the files");
    CHECK(training() == before);
    cluster.redis().restart();
    CHECK(test::resumed_from_or_zero(resume({"--max-iter", "450"})) == 400);
  }
  SECTION("a store of another training than the last that began with this prefix") {
    std::ofstream(cluster.file("snap.count.training"))
        << "training " << std::string(32, '7') << "\n";
    const std::string text = resume({});
    contains(text, "is 7777777777777777, of which the store has nothing; going on with that of");
    CHECK(test::resumed_from_or_zero(text) == 200);
  }
  SECTION("files of another net") {
    std::ifstream stream(cluster.file("solver.prototxt"));
    std::string solver{std::istreambuf_iterator<char>(stream), {}};
    solver.replace(solver.find("num_output: 64"), 14, "num_output: 32");
    std::ofstream(cluster.file("solver.prototxt")) << solver;
    cluster.redis().restart();
    const std::string text = resume({});
    contains(text, "leaves out 4 checkpoint files, the newest of which is");
    contains(text, "is of another net");
    CHECK(test::resumed_from_or_zero(text) == 0);
  }
  SECTION("files of another job") {
    contains(resume({"--key-name", "stranger"}), "is of job 'count', this one is 'stranger'");
  }
  SECTION("a new training over them says that they are there") {
    Process& second = cluster.start_master(flags);
    cluster.address();
    CHECK(second.says("lie checkpoints of other trainings, the newest"));
  }
}

}  // namespace speedo
