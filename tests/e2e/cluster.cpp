#include "cluster.hpp"

#include <signal.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "support/catch.hpp"
#include "support/random_seed.hpp"

#include <speedo/train/master_session.hpp>

namespace speedo::test {
namespace {

constexpr const char* kJob = "count";
constexpr std::uint64_t kInputs = 64;  // of the layer: a row of its weights

// base_lr / 4: the change of every weight by one run.
constexpr float kStep = 0.0009765625F;

// Lines that a command prints.
std::size_t count_lines(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  REQUIRE(pipe);
  std::size_t lines = 0;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) lines += line[0] != '\n';
  return lines;
}

}  // namespace

std::string program(const std::string& name) {
  const char* folder = std::getenv("SPEEDO_BIN_DIR");
  return std::string(folder != nullptr ? folder : SPEEDO_BUILT_PROGRAMS) + "/" + name;
}

Cluster::Cluster(std::uint64_t iterations, const Options& options)
    : other_redis_(options.redis),
      password_(options.password),
      user_(options.user),
      user_info_(options.user_info),
      gate_(options.own_proof ? DrawnGate::none() : DrawnGate::make(folder_.path())),
      tls_(options.tls),
      shared_memory_(options.shared_memory),
      rows_(options.rows) {
  RedisServer::Options redis;
  redis.append_only = options.append_only;
  if (options.user.empty()) redis.password = options.password;
  redis.extra = options.redis_lines;
  const int servers = other_redis_.empty() ? options.servers : 0;
  for (int i = 0; i < servers; ++i) redis_.push_back(std::make_unique<RedisServer>(redis));
  std::ifstream shared("tests/support/counting_solver.prototxt");
  std::string net{std::istreambuf_iterator<char>(shared), {}};
  REQUIRE_FALSE(net.empty());
  net.replace(net.rfind("ROWS"), 4, std::to_string(rows_));
  std::ofstream(file("solver.prototxt"))
      << net << "max_iter: " << iterations << " snapshot_prefix: \"" << file("snap").string()
      << "\" " << options.solver << "\n";
}

Process& Cluster::start_master(const std::vector<std::string>& extra,
                               const std::vector<std::string>& environment) {
  std::vector<std::string> command{program("speedo-master"), "--solver",
                                   file("solver.prototxt").string(), "--redis",
                                   redis_addresses(),
                                   "--address-file", file("address").string(), "--json"};
  if (!shared_memory_) command.emplace_back("--no-shared-memory");
  command = joined(std::move(command), gate_.master_flags());
  command.insert(command.end(), extra.begin(), extra.end());
  std::filesystem::remove(file("address"));
  masters_.emplace_back(std::move(command), log("master"), environment);
  return masters_.back();
}

std::string Cluster::redis_addresses() const {
  std::string text = other_redis_;
  for (const auto& each : redis_) {
    text += (text.empty() ? "redis://" + user_info_ : ",redis://") + "127.0.0.1:" +
            std::to_string(each->port());
  }
  return text;
}

std::string Cluster::address() {
  for (int i = 0; i < 3000; ++i) {
    std::ifstream stream(file("address"));
    std::string text;
    if (std::getline(stream, text) && !text.empty()) return text;
    if (!masters_.back().running()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  FAIL("no master listens: " << masters_.back().errors());
  return {};
}

Process& Cluster::start_worker(const std::string& master, const std::vector<std::string>& extra,
                               const std::vector<std::string>& environment) {
  std::vector<std::string> command{program("speedo-worker"), "--master", master};
  command = joined(std::move(command), gate_.worker_flags());
  command.insert(command.end(), extra.begin(), extra.end());
  workers_.emplace_back(std::move(command), log("worker"), environment);
  return workers_.back();
}

nlohmann::json Cluster::result(const Process& master) {
  const std::string text = master.output();
  INFO("standard output: " << text << "\nstandard error: " << master.errors());
  REQUIRE_FALSE(text.empty());
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t begin = text.rfind('\n', end);
  const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
  auto parsed = nlohmann::json::parse(text.substr(from, end - from + 1), nullptr, false);
  REQUIRE_FALSE(parsed.is_discarded());
  return parsed;
}

std::shared_ptr<ParameterStore> Cluster::store() {
  std::vector<RedisOptions> servers;
  for (const auto& each : redis_) {
    servers.push_back(seen_at(parse_redis_uri(each->tcp_uri()).value()));
  }
  for (const RedisAddress& node : nodes()) {
    RedisOptions server;
    server.address = node;
    servers.push_back(seen_at(std::move(server)));
  }
  return open_redis_store(servers, kJob).value();
}

RedisOptions Cluster::seen_at(RedisOptions server) const {
  server.credentials = {.user = user_, .password = Secret(password_)};
  server.tls = tls_;
  return server;
}

std::uint64_t Cluster::stored_iteration() {
  const auto weights = store()->read(weights_key());
  if (!weights) return 0;
  const auto origin = MasterSession::origin_of((*weights)->info().state);
  REQUIRE(origin);
  return origin->iteration;
}

bool Cluster::gets_beyond(std::uint64_t iteration) {
  for (int i = 0; i < 6000; ++i) {
    if (stored_iteration() > iteration) return true;
    test::sleep_ms(10);
  }
  return false;
}

std::optional<std::uint64_t> Cluster::counted() {
  const auto source = store();
  const auto weights_there = source->read(weights_key());
  if (!weights_there) return std::nullopt;
  const Digest model = (*weights_there)->info().model;
  // Histories may follow.
  std::vector<float> weights((*weights_there)->info().element_count);
  REQUIRE(weights.size() % (kInputs * rows_) == 0);
  const auto got = get(*source, weights_key(), model, weights);
  // A master that merges hundreds of times a second may overtake a reader again and again.
  if (!got && got.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!got) FAIL(got.error().message);
  weights.resize(kInputs * rows_);
  // Each as the next: in one call, as this is read over and over and not optimised.
  REQUIRE(std::memcmp(&weights[0], &weights[1], (weights.size() - 1) * sizeof(float)) == 0);
  const float count = -weights.front() / kStep;
  REQUIRE(count == std::floor(count));
  return static_cast<std::uint64_t>(count);
}

bool Cluster::counts_beyond(std::uint64_t iterations, std::chrono::milliseconds patience) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < patience) {
    if (counted().value_or(0) > iterations) return true;
    test::sleep_ms(20);
  }
  return false;
}

std::size_t Cluster::worker_keys() {
  std::size_t keys = 0;
  std::vector<int> ports;
  for (const auto& each : redis_) ports.push_back(each->port());
  for (const RedisAddress& node : nodes()) ports.push_back(node.port);
  const std::string auth = password_.empty() ? "" : " --no-auth-warning -a " + password_ +
                                                 (user_.empty() ? "" : " --user " + user_);
  for (const int port : ports) {
    for (const std::string& prefix : {contribution_key_prefix(), handout_key_prefix()}) {
      keys += count_lines("redis-cli -p " + std::to_string(port) + auth +
                          " --scan --pattern '*:" + prefix + "*'");
    }
  }
  return keys;
}

std::vector<RedisAddress> Cluster::nodes() const {
  if (other_redis_.empty()) return {};
  return parse_redis_addresses(other_redis_).value();
}

std::filesystem::path Cluster::log(const std::string& who) {
  return folder_ / (who + std::to_string(logs_++));
}

void require_ending(Cluster& cluster, Process& master, const Ending& ending) {
  const auto code = master.wait(std::chrono::seconds{120});
  INFO("master: " << master.errors());
  REQUIRE(code == 0);
  const auto result = Cluster::result(master);
  const std::uint64_t merges = ending.iterations - ending.from;
  CHECK(result["iterations"] == ending.iterations);
  CHECK(result["merges"] == merges);
  CHECK(result["contributions"] >= merges);
  CHECK(result["contributions"] <= ending.contributors_max * merges);
  CHECK(cluster.counted() == ending.iterations);
  for (Process& worker : cluster.workers()) {
    const auto end = worker.wait(std::chrono::seconds{60});
    INFO("worker: " << worker.errors());
    CHECK((end == 0 || end == 128 + SIGKILL));
  }
}

std::uint64_t kill_worker_and_master(Cluster& cluster, Process& master, const std::string& address,
                                     Random& random) {
  sleep_ms(random.below(30));
  cluster.workers().front().signal(SIGKILL);
  cluster.start_worker(address);
  sleep_ms(random.below(300));
  master.signal(SIGKILL);
  const auto killed = master.wait();
  REQUIRE(killed == 128 + SIGKILL);
  return cluster.counted().value();
}

std::uint64_t resumed_from_or_zero(const std::string& text) {
  const std::string before = "goes on from iteration ";
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return 0;
  return std::strtoull(text.c_str() + at + before.size(), nullptr, 10);
}

std::uint64_t resumed_from(const Process& master) {
  const std::string text = master.errors();
  INFO("master: " << text);
  REQUIRE(text.find("goes on from iteration ") != std::string::npos);
  return resumed_from_or_zero(text);
}

std::vector<int> rounds(int few) {
  constexpr int kAll = 20;
  std::vector<int> result;
  const int first = is_long() ? 0 : static_cast<int>(seed() % kAll), count = is_long() ? kAll : few;
  for (int i = 0; i < count; ++i) result.push_back((first + i) % kAll);
  return result;
}

std::uint64_t seed() { return varied(20261121); }

void sleep_ms(std::uint64_t time) { std::this_thread::sleep_for(std::chrono::milliseconds{time}); }

Arguments joined(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace speedo::test
