// What is recommended is the best of all that is possible, on clusters that differ in kind.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "measure/simulate/simulate_recommend_report.hpp"
#include "plan_support.hpp"
#include "sim/plan/cost_exchange.hpp"
#include "sim/plan/recommend.hpp"
#include "train/schedule_numbers.hpp"
#include "support/long_runs.hpp"
#include "support/random_seed.hpp"

namespace speedo::sim {
namespace {

struct Described {
  const char* what;
  std::function<void(ClusterCosts&)> change;
  std::uint64_t workers_tried = 0;  // 0: several
  bool lossy = false;
};

constexpr double kGigabit = 117e6;

MachineCosts machine_of(const std::string& name, std::uint64_t count, double step_seconds,
                        double bytes_per_second) {
  MachineCosts machine;
  machine.name = name;
  machine.count = count;
  machine.cores = 4.0;
  machine.step_seconds = {step_seconds};
  machine.step_spread = 0.05;
  machine.workers_max = 1;
  machine.bytes_per_second = bytes_per_second;
  return machine;
}

// Four machines of one worker each with links of that rate, a net of some million floats.
ClusterCosts four_machines(double bytes_per_second) {
  ClusterCosts cluster;
  cluster.net = {.parameters = 13400000, .batch = 32, .histories = 1};
  cluster.net.buckets = {{.parameters = 3400000, .needed = 0.0, .final = 0.95},
                         {.parameters = 10000000, .needed = 0.2, .final = 0.5}};
  cluster.net.update = 0.05;
  cluster.machines = {machine_of("m", 4, 0.4, bytes_per_second)};
  cluster.store.machine = cluster.master.machine = "m";
  cluster.store.record_seconds = 300e-6;
  cluster.store.read_bytes_per_second = 2.5e9;
  cluster.store.write_bytes_per_second = 2.7e9;
  cluster.store.busy_read_bytes_per_second = 5e9;
  cluster.store.busy_write_bytes_per_second = 4e9;
  cluster.master.merge_bytes_per_second = 8e9;
  cluster.master.rule_seconds = 0.01;
  cluster.master.message_seconds = 50e-6;
  cluster.worker.client_bytes_per_second = 3e9;
  cluster.network.latency_seconds = 100e-6;
  return cluster;
}

const std::vector<Described> kClusters = {
    {"one machine", [](ClusterCosts& cluster) {
       cluster.machines[0].count = 1;
       cluster.machines[0].workers_max = 4;
     }},
    {"four machines, 1 Gbit/s", [](ClusterCosts&) {}, 4, true},
    {"four machines, 10 Gbit/s", [](ClusterCosts& cluster) {
       cluster.machines[0].bytes_per_second = 10.0 * kGigabit;
     }},
    {"a head with a slow link", [](ClusterCosts& cluster) {
       cluster.machines.push_back(machine_of("head", 1, 1.0, kGigabit / 4.0));
       cluster.store.machine = cluster.master.machine = "head";
       cluster.machines[0].bytes_per_second = 10.0 * kGigabit;
     }},
    {"stragglers", [](ClusterCosts& cluster) {
       cluster.machines[0].count = 3;
       cluster.machines.push_back(machine_of("old", 1, 1.6, kGigabit));
       cluster.machines[0].step_spread = 0.3;
     }},
    {"a large net of inner products", [](ClusterCosts& cluster) {
       cluster.net.parameters = 140000000;
       cluster.net.buckets = {{.parameters = 15000000, .needed = 0.0, .final = 1.0},
                              {.parameters = 125000000,
                               .needed = 0.35,
                               .final = 0.45,
                               .factors = {.rows = 32, .height = 5000, .width = 25000},
                               .product = 0.02}};
     }},
    {"a small net", [](ClusterCosts& cluster) {
       cluster.net.parameters = 431080;
       cluster.net.buckets.clear();
       cluster.machines[0].step_seconds = {0.005};
     }},
    {"many workers", [](ClusterCosts& cluster) { cluster.machines[0].count = 16; }, 16},
    {"machines of several workers, slow links", [](ClusterCosts& cluster) {
       cluster.machines[0].count = 2;
       cluster.machines[0].workers_max = 0;
       cluster.machines.push_back(machine_of("old", 1, 0.8, kGigabit));
       cluster.machines[0].bytes_per_second = kGigabit / 10.0;
     }},
    {"batches to choose from", [](ClusterCosts& cluster) {
       cluster.net.batches = {{.batch = 16, .times = 0.55}, {.batch = 64, .times = 1.9}};
     }, 4},
    {"a busy store and no link to wait for", [](ClusterCosts& cluster) {
       cluster.machines[0].bytes_per_second = 0.0;
       cluster.store.busy_read_bytes_per_second = 3e8;
       cluster.store.busy_write_bytes_per_second = 3e8;
       cluster.worker.shares_memory = false;
     }},
};

// Schedules of each kind, few rounds of each: more only take time to plan.
RecommendOptions options_for(const Described& described) {
  RecommendOptions options;
  options.rounds = 4;
  options.space.schedules = *parse_plan_schedules("sync,async,averaging:5");
  if (described.workers_tried > 0) options.space.workers = {described.workers_tried};
  options.space.lossy = described.lossy;
  return options;
}

std::string family(const Choice& choice) {
  return choice.candidate.schedule.label + (choice.candidate.codec == "none" ? "" : ", lossy");
}

// Every other one, drawn by the seed: planning all that is possible takes seconds of each.
std::vector<Described> drawn_clusters() {
  if (test::is_long()) return kClusters;
  std::vector<Described> drawn;
  for (std::size_t i = test::fresh_seed() % 2; i < kClusters.size(); i += 2) {
    drawn.push_back(kClusters[i]);
  }
  return drawn;
}

TEST_CASE("What is recommended is within 5 % of the best of all that is possible") {
  std::size_t planned = 0, possible = 0;
  for (const Described& described : drawn_clusters()) {
    CAPTURE(described.what);
    ClusterCosts cluster = four_machines(kGigabit);
    described.change(cluster);
    const RecommendOptions options = options_for(described);
    const auto found = recommend(cluster, options);
    const auto best = recommend_exhaustively(cluster, options);
    if (!found) FAIL(found.error().message);
    REQUIRE(best);
    REQUIRE(found->alike.size() == best->alike.size());
    for (std::size_t i = 0; i < best->alike.size(); ++i) {
      CHECK(found->alike[i].result.images_per_second >=
            0.95 * best->alike[i].result.images_per_second);
    }
    REQUIRE(found->others.size() == best->others.size());
    for (const Choice& other : best->others) {
      for (const Choice& each : found->others) {
        if (family(each) != family(other)) continue;
        CAPTURE(family(each));
        CHECK(each.result.images_per_second >= 0.95 * other.result.images_per_second);
      }
    }
    REQUIRE_FALSE(found->alike.empty());
    planned += found->planned;
    possible += found->possible;
  }
  CAPTURE(planned, possible);
  CHECK(planned < possible * 3 / 4);
}

TEST_CASE("No plan is faster than its bound") {
  for (const Described& described : drawn_clusters()) {
    if (described.workers_tried == 16) continue;
    CAPTURE(described.what);
    ClusterCosts cluster = four_machines(kGigabit);
    described.change(cluster);
    RecommendOptions options;
    options.rounds = 6;
    options.space.schedules =
        *parse_plan_schedules("sync,ssp,weedout,grouping,easgd,sync-easgd:10");
    const auto all = candidates_of(cluster, options.space);
    REQUIRE(all);
    for (const Candidate& each : *all) {
      CAPTURE(each.schedule.label, each.workers, each.shards, static_cast<int>(each.contributes));
      const auto result = plan_candidate(cluster, each, options);
      REQUIRE(result);
      CHECK(result->images_per_second <= 1.02 * images_bound(cluster, each));
    }
  }
}

RecommendReport report_of(const ClusterCosts& cluster, const char* schedules,
                          std::uint64_t workers) {
  RecommendReport report;
  report.cluster = cluster;
  report.options.rounds = 3;
  report.options.space.schedules = *parse_plan_schedules(schedules);
  report.options.space.workers = {workers};
  auto found = recommend(cluster, report.options);
  if (!found) FAIL(found.error().message);
  report.found = *found;
  return report;
}

TEST_CASE("Several threads find what one does, by as many plans") {
  RecommendOptions options;
  options.rounds = 3;
  options.space.schedules = *parse_plan_schedules("sync,async,easgd:4");
  options.space.workers = {2, 4};
  const ClusterCosts cluster = four_machines(kGigabit);
  const auto one = recommend(cluster, options);
  options.threads = 3;
  const auto several = recommend(cluster, options);
  REQUIRE((one && several));
  CHECK(several->planned == one->planned);
  CHECK(several->planned < several->possible);  // some were begun in vain
  const auto names = [](const Recommendation& found) {
    std::vector<std::string> all;
    for (const auto* choices : {&found.alike, &found.others}) {
      for (const Choice& each : *choices) {
        all.push_back(fmt::format("{} {} {} {}", each.candidate.schedule.label,
                                  each.candidate.workers, each.candidate.shards,
                                  each.result.images_per_second));
      }
    }
    return all;
  };
  CHECK(names(*several) == names(*one));
}

TEST_CASE("What learns otherwise is never recommended beside what learns alike") {
  ClusterCosts cluster = four_machines(kGigabit / 10.0);  // easgd:10 is many times as fast
  const RecommendReport report = report_of(cluster, "sync,easgd:10,averaging:5", 4);
  CHECK(recommended(report).candidate.schedule.label == "sync");
  CHECK(report.found.others.front().result.images_per_second >
        2.0 * recommended(report).result.images_per_second);
  CHECK(recommended(report_of(cluster, "easgd,async", 4)).candidate.schedule.label != "sync");
}

TEST_CASE("Factors are recommended where inner products are large and links slow") {
  ClusterCosts cluster = four_machines(kGigabit);
  kClusters[5].change(cluster);
  CHECK(recommended(report_of(cluster, "sync", 4)).candidate.contributes ==
        Contributes::kReplicated);
  cluster.net.buckets[1].factors = {};
  CHECK(recommended(report_of(cluster, "sync", 4)).candidate.contributes !=
        Contributes::kReplicated);
}

TEST_CASE("A recommendation says what to start") {
  ClusterCosts cluster = four_machines(kGigabit);
  Candidate candidate;
  candidate.schedule = *parse_plan_schedule("easgd:4");
  candidate.workers = 4;
  candidate.shards = 2;
  candidate.codec = "bf16";
  candidate.batch = 64;
  const std::string proofs = " --token-file job.token --redis-password-file redis.password";
  CHECK(commands_for(cluster, candidate) ==
        std::vector<std::string>{
            "once, for all machines: speedo token create job.token; (umask 077; head -c 24 "
            "/dev/urandom | base64 > redis.password)",
            "on m-0, m-1: { cat conf/redis.conf; echo \"bind 127.0.0.1 127.0.1.1 $(hostname "
            "-I)\"; echo \"requirepass $(cat redis.password)\"; } | redis-server -",
            "on m-0: speedo-master --solver S.prototxt --workers 4 --strategy easgd "
            "--communication-period 4 --codec bf16 --redis m-0,m-1 --bind m-0 --shards 2" + proofs,
            "on m-0: speedo-worker --master ADDRESS --shard=1" + proofs,
            "on m-1: speedo-worker --master ADDRESS --shard=2" + proofs,
            "on m-0, m-1, m-2, m-3: speedo-worker --master ADDRESS" + proofs,
            "in the net: batch_size: 64"});
  cluster.machines[0].count = 1;
  cluster.machines[0].workers_max = 0;
  cluster.worker.shares_memory = false;
  candidate = Candidate{.schedule = *parse_plan_schedule("sync"),
                        .contributes = Contributes::kGradients,
                        .workers = 3,
                        .batch = 32};
  CHECK(commands_for(cluster, candidate) ==
        std::vector<std::string>{"speedo run --solver S.prototxt --workers 3 --sync "
                                 "--gradient-only --threads 3 --no-shared-memory"});
  candidate.contributes = Contributes::kReplicated;
  CHECK(commands_for(cluster, candidate) ==
        std::vector<std::string>{"speedo run --solver S.prototxt --workers 3 --sync "
                                 "--gradient-only --replicated --threads 3"});
}

bool has_line(const std::vector<std::string>& lines, const std::string& begin) {
  return std::ranges::any_of(lines,
                             [&](const std::string& line) { return line.find(begin) == 0; });
}

TEST_CASE("Workers of one machine are one process with the threads that were planned") {
  ClusterCosts cluster = four_machines(kGigabit);
  cluster.machines[0].count = 2;
  cluster.machines[0].cores = 8.0;
  cluster.machines[0].workers_max = 0;
  cluster.machines[0].step_seconds = {0.4, 0.2, 0.14, 0.1, 0.09, 0.08, 0.07, 0.06};
  Candidate candidate{.schedule = *parse_plan_schedule("sync"), .workers = 5, .batch = 32};
  const std::string worker = ": speedo-worker --master ADDRESS --workers ";
  std::vector<std::string> lines = commands_for(cluster, candidate);
  CHECK(has_line(lines, "on m-0" + worker + "3 --threads 6 --token-file"));
  CHECK(has_line(lines, "on m-1" + worker + "2 --threads 8 --token-file"));
  cluster.machines[0].threads = 1;
  candidate.workers = 6;
  lines = commands_for(cluster, candidate);
  CHECK(has_line(lines, "on m-0, m-1" + worker + "3 --threads 3 --token-file"));
  candidate.workers = 2;
  CHECK(has_line(commands_for(cluster, candidate),
                 "on m-0, m-1: speedo-worker --master ADDRESS --threads 1 --token-file"));
  cluster.machines[0].count = 1;
  candidate.workers = 4;
  CHECK(commands_for(cluster, candidate) ==
        std::vector<std::string>{"speedo run --solver S.prototxt --workers 4 --sync --threads 4"});
}

TEST_CASE("More machines behind slow links do not make a recommendation worse") {
  const auto found_of = [](std::uint64_t machines, const std::string& master) {
    ClusterCosts cluster;
    cluster.net = {.parameters = 1000000, .batch = 32};
    cluster.machines = {machine_of("head", 1, 0.4, 1e6), machine_of("m", machines, 0.1, 1e6)};
    cluster.machines[0].cores = 1.0;
    cluster.machines[1].cores = 8.0;
    cluster.machines[1].workers_max = 0;
    cluster.machines[1].step_spread = 0.0;
    cluster.store.machine = cluster.master.machine = master;
    cluster.network.latency_seconds = 1e-3;
    RecommendReport report;
    report.cluster = cluster;
    report.options.rounds = 4;
    report.options.space.schedules = *parse_plan_schedules("sync");
    const auto found = recommend(cluster, report.options);
    if (!found) FAIL(found.error().message);
    report.found = *found;
    return report;
  };
  for (const std::uint64_t machines : {1, 2, 4, 64}) {
    for (const char* master : {"head", "m"}) {
      CAPTURE(machines, master);
      const RecommendReport report = found_of(machines, master);
      const Choice& best = recommended(report);
      CHECK(best.result.images_per_second > 2500.0);
      CHECK(commands_for(report.cluster, best.candidate).front().find(
                machines == 1 ? "on m: speedo run --solver S.prototxt --workers 8 --sync"
                              : "on m-0: speedo run --solver S.prototxt --workers 8 --sync") == 0);
      CHECK(to_text(report).find("8 workers on 1 machine, ") != std::string::npos);
    }
  }
}

TEST_CASE("A rule takes the same time for any batch") {
  ClusterCosts cluster = four_machines(0.0);
  cluster.net.buckets.clear();  // so that the rule begins where all gradients end
  cluster.net.update = 0.3;
  cluster.net.batches = {{.batch = 64, .times = 1.7}};
  Candidate larger;
  larger.batch = 64;
  larger.step_times = 1.7;
  const ClusterCosts used = cluster_for(cluster, larger);
  CHECK(used.net.update * used.machines[0].step_seconds[0] ==
        Approx(0.3 * cluster.machines[0].step_seconds[0]));
  CHECK(used.machines[0].step_seconds[0] == Approx(1.7 * cluster.machines[0].step_seconds[0]));
  // A plan by gradients is not faster than computing them and applying the rule to them.
  cluster.master.rule_seconds = 0.3 * 0.4;
  RecommendOptions options;
  options.rounds = 4;
  options.space.schedules = *parse_plan_schedules("sync");
  options.space.workers = {2};
  const auto found = recommend(cluster, options);
  REQUIRE(found);
  const double least = (1.7 - 0.3) * 0.4 + 0.3 * 0.4;
  CHECK(found->alike.front().result.images_per_second < 1.05 * 2.0 * 64.0 / least);
}

TEST_CASE("A recommendation keeps the codec that is described, unless another is asked for") {
  ClusterCosts cluster = four_machines(kGigabit);
  cluster.worker.codec = "int8";
  SpaceOptions options;
  options.schedules = *parse_plan_schedules("sync,async");
  options.workers = {2};
  const auto codecs = [&] {
    std::set<std::string> names;
    const auto all = candidates_of(cluster, options);
    REQUIRE(all);
    for (const Candidate& each : *all) names.insert(each.codec);
    return names;
  };
  CHECK(codecs() == std::set<std::string>{"int8"});
  options.codec = "none";
  CHECK(codecs() == std::set<std::string>{"none"});
  options.codec.clear();
  options.lossy = true;
  cluster.worker.codec = "topk:3";
  CHECK(codecs().contains("none"));
  CHECK(codecs().contains("topk:3"));
}

TEST_CASE("No way to use a cluster is tried twice") {
  for (const Described& described : kClusters) {
    CAPTURE(described.what);
    ClusterCosts cluster = four_machines(kGigabit);
    described.change(cluster);
    SpaceOptions options;
    options.schedules = *parse_plan_schedules("sync");
    options.shards = 0;
    const auto all = candidates_of(cluster, options);
    REQUIRE(all);
    std::set<std::string> ways;
    for (const Candidate& each : *all) {
      const auto commands = commands_for(cluster, each);
      ways.insert(std::accumulate(commands.begin(), commands.end(), std::string()));
    }
    CHECK(ways.size() == all->size());
  }
}

TEST_CASE("Servers of one machine have ports of their own") {
  const std::string redis = "{ cat conf/redis.conf; ";
  const std::string open = "echo \"bind 127.0.0.1 127.0.1.1 $(hostname -I)\"";
  const Candidate candidate{
      .schedule = *parse_plan_schedule("sync"), .workers = 4, .shards = 6, .batch = 32};
  const auto lines = commands_for(four_machines(kGigabit), candidate);
  CHECK(has_line(lines, "on m-0, m-1, m-2, m-3: " + redis + open));
  CHECK(has_line(lines, "on m-0, m-1: " + redis + "echo \"port 6380\"; " + open));
}

TEST_CASE("Copies are told of where there are some: not of replicated updates") {
  const ClusterCosts cluster = four_machines(kGigabit);
  Candidate candidate{.schedule = *parse_plan_schedule("sync"), .workers = 4, .shards = 2};
  const auto told = [&] { return describe_exchange(cluster_for(cluster, candidate)); };
  CHECK(told().find("each with a copy on the next") != std::string::npos);
  candidate.contributes = Contributes::kReplicated;
  CHECK(told().find("without copies") != std::string::npos);
}

TEST_CASE("A recommended schedule keeps its groups") {
  const Candidate candidate{
      .schedule = *parse_plan_schedule("grouping:2"), .workers = 4, .batch = 32};
  CHECK(has_line(commands_for(four_machines(kGigabit), candidate),
                 "on m-0: speedo-master --solver S.prototxt --workers 4 --strategy grouping "
                 "--groups 2 --redis"));
}

TEST_CASE("A machine that does it all is planned with the one server of its command") {
  ClusterCosts cluster = four_machines(0.0);
  cluster.machines[0].count = 1;
  cluster.machines[0].workers_max = 4;
  cluster.worker.shares_memory = false;
  cluster.store.busy_read_bytes_per_second = cluster.store.busy_write_bytes_per_second = 3e8;
  cluster.store.read_bytes_per_second = cluster.store.write_bytes_per_second = 3e8;
  const Candidate candidate{.schedule = *parse_plan_schedule("sync"), .workers = 4, .batch = 32};
  const auto images = [&] {
    const auto result = plan_candidate(cluster, candidate, {});
    REQUIRE(result);
    return result->images_per_second;
  };
  const double of_one = images();
  cluster.store.servers = 4;
  CHECK(images() == of_one);
  CHECK(has_line(commands_for(cluster, candidate), "speedo run "));
  cluster.machines[0].count = 2;  // the servers are on both
  CHECK(images() > 1.2 * of_one);
  CHECK(has_line(commands_for(cluster, candidate), "once, for all machines"));
}

TEST_CASE("No more workers are recommended than a master takes") {
  ClusterCosts cluster = four_machines(kGigabit);
  cluster.machines[0].count = 2049;
  cluster.machines[0].cores = 2.0;
  cluster.machines[0].workers_max = 0;
  SpaceOptions options;
  options.schedules = *parse_plan_schedules("sync");
  options.shards = 0;
  const auto all = candidates_of(cluster, options);
  REQUIRE(all);
  CHECK(std::ranges::max(*all, {}, &Candidate::workers).workers == kWorkersMax);
}

TEST_CASE("A search tells how far it is") {
  RecommendOptions options = options_for(kClusters[1]);
  std::size_t told = 0;
  double best = 0.0;
  std::string line;
  options.on_planned = [&](const RecommendProgress& progress) {
    CHECK(progress.planned == ++told);
    CHECK(progress.possible > 1);
    CHECK(progress.best->result.images_per_second >= best);
    best = progress.best->result.images_per_second;
    line = progress_line(progress);
  };
  const auto found = recommend(four_machines(kGigabit), options);
  REQUIRE(found);
  CHECK(told == found->planned);
  CHECK(line.find(std::to_string(told) + " of " + std::to_string(found->possible) +
                  " planned, best so far ") == 0);
}

TEST_CASE("All of a few counts are tried, and any number is one a core") {
  ClusterCosts cluster = four_machines(kGigabit);
  cluster.machines[0].count = 1;
  cluster.machines[0].cores = 3.0;
  cluster.machines[0].workers_max = 0;
  const auto counts = [&] {
    std::set<std::uint64_t> found;
    const auto all = candidates_of(cluster, {});
    REQUIRE(all);
    for (const Candidate& each : *all) found.insert(each.workers);
    return found;
  };
  CHECK(counts() == std::set<std::uint64_t>{1, 2, 3});
  cluster.machines[0].cores = 40.0;
  CHECK(counts() == std::set<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 40});
}

TEST_CASE("Where no cluster pays none is recommended") {
  ClusterCosts cluster = four_machines(kGigabit / 10000.0);
  const RecommendReport report = report_of(cluster, "sync", 4);
  REQUIRE(recommended(report).result.speed_up < 1.0);
  CHECK(to_text(report).find("Recommended: no cluster, one process") == 0);
  CHECK(to_text(report).find("speedo train --solver S.prototxt") != std::string::npos);
  CHECK(to_json(report).find("\"pays\":false") != std::string::npos);
  CHECK(to_text(report).find("batch_size") == std::string::npos);
  RecommendReport other = report;
  other.found.alike.front().candidate.batch = 64;
  CHECK(to_text(other).find("speedo train --solver S.prototxt\n  in the net: batch_size: 64\n") !=
        std::string::npos);
}

TEST_CASE("A recommendation is told as text and as JSON, with three reasons") {
  const RecommendReport report = report_of(four_machines(100.0 * kGigabit), "sync,async", 2);
  const std::vector<std::string> reasons = reasons_of(report);
  REQUIRE(reasons.size() == 3);
  CHECK(reasons[0].find("The runner-up, sync") == 0);
  CHECK(reasons[1].find("times those of one worker") != std::string::npos);
  CHECK(reasons[2].find("Assumed: ") == 0);
  const std::string text = to_text(report);
  for (const std::string& reason : reasons) CHECK(text.find(reason) != std::string::npos);
  CHECK(text.find("Recommended: sync") == 0);
  CHECK(text.find("learn of an image differs") != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json.at("recommended").at("learns_alike") == true);
  CHECK(json.at("recommended").at("commands").size() >= 3);
  CHECK(json.at("reasons").size() == 3);
  CHECK(json.at("next").size() == report.found.alike.size() - 1);
  CHECK(json.at("others").size() == 1);
  CHECK(json.at("others")[0].at("learns_alike") == false);
}

TEST_CASE("What cannot be recommended is refused") {
  const ClusterCosts cluster = four_machines(kGigabit);
  RecommendOptions options;
  std::string wanted;
  SECTION("more workers than there is room for") {
    options.space.workers = {9};
    wanted = "the machines take 4 workers, not 9";
  }
  SECTION("nothing that goes together") {
    options.space.schedules = *parse_plan_schedules("averaging");
    options.space.shards = 2;
    wanted = "go together";
  }
  const auto found = recommend(cluster, options);
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::kConfig);
  CHECK(found.error().message.find(wanted) != std::string::npos);
}

}  // namespace
}  // namespace speedo::sim
