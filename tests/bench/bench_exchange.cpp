// One synchronous round of two workers through Redis: both put a contribution, the merger averages
// and publishes, both get the new weights. Prints one table row per transport, size and kind of
// master (fenced: each publication is conditional on its term), rounds of both kinds in turns, and
// what copying the same bytes in memory costs in the same run.
//   bench_exchange [ROUNDS]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "caffe.pb.h"

#include <speedo/core/parameter_arena.hpp>
#include <speedo/store/redis_store.hpp>
#include <speedo/train/merger.hpp>

#include "support/redis_server.hpp"

namespace speedo {
namespace {

constexpr std::uint64_t kWorkers = 2;
// Of a session of some workers.
constexpr std::size_t kStateBytes = 1000;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class T>
T value_or_exit(Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

ParameterLayout layout_of(std::int64_t count) {
  ParameterLayout layout;
  ParameterSlot slot;
  slot.layer = "all";
  slot.shape = Shape({count});
  layout.add(slot);
  return layout;
}

struct Worker {
  std::shared_ptr<ParameterStore> store;
  std::vector<float> contribution, weights;
};

struct Round {
  double put_ms = 0, merge_ms = 0, get_ms = 0;
  double total() const { return put_ms + merge_ms + get_ms; }
};

template <class F>
double in_parallel(std::vector<Worker>& workers, F work) {
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (std::uint64_t w = 0; w < workers.size(); ++w) {
    threads.emplace_back([&, w] { work(w, workers[w]); });
  }
  for (std::thread& thread : threads) thread.join();
  return ms_since(start);
}

template <class T, class F>
T wait_for(F start) {
  std::promise<Result<T>> promise;
  start([&](Result<T> result) { promise.set_value(std::move(result)); });
  return value_or_exit(promise.get_future().get());
}

// One job and who works on it.
struct Cluster {
  Cluster(const RedisOptions& options, const ParameterLayout& layout, std::uint64_t of_term)
      : term(of_term), model(layout.digest()) {
    const std::string job = "bench" + std::to_string(term);
    const auto elements = static_cast<std::size_t>(layout.element_count());
    for (std::uint64_t w = 0; w < kWorkers; ++w) {
      workers.push_back({value_or_exit(open_redis_store(options, job)),
                         std::vector<float>(elements, 1e-6F * static_cast<float>(w + 1)),
                         std::vector<float>(elements)});
    }
    Checkpoint start;
    start.weights.assign(elements, 0.5F);
    MergerConfig config;
    config.term = term;
    merger = value_or_exit(make_merger(config, layout, caffe::SolverParameter(), std::move(start),
                                       value_or_exit(open_redis_store(options, job))));
    wait_for<Version>([&](auto done) { merger->enter_stage(0, state, std::move(done)); });
  }
  ~Cluster() {
    merger.reset();
    if (auto done = workers[0].store->clear(); !done) value_or_exit(Result<int>(done.error()));
  }
  Round round(std::uint64_t run);

  const std::uint64_t term;
  const Digest model;
  const std::string state = std::string(kStateBytes, 's');
  std::vector<Worker> workers;
  std::unique_ptr<Merger> merger;
};

Round Cluster::round(std::uint64_t run) {
  Round times;
  times.put_ms = in_parallel(workers, [&](std::uint64_t w, Worker& worker) {
    RecordInfo info;
    info.model = model;
    info.version = run;
    info.worker = w;
    const auto done = put(*worker.store, contribution_key(term, w), info, worker.contribution);
    if (!done) value_or_exit(Result<int>(done.error()));
  });
  const auto start = Clock::now();
  MergeJob job{};
  for (std::uint64_t w = 0; w < kWorkers; ++w) {
    job.contributions.push_back({WorkerId{w}, RunId{run}, 1.0F});
  }
  job.mean = true;
  job.state = state;
  const auto result = wait_for<MergeResult>(
      [&](auto done) { merger->merge(std::move(job), std::move(done)); });
  if (!result.rejected.empty()) std::exit(1);
  times.merge_ms = ms_since(start);
  times.get_ms = in_parallel(workers, [&](std::uint64_t, Worker& worker) {
    value_or_exit(get(*worker.store, weights_key(), model, worker.weights));
  });
  return times;
}

// What a round moves at the very least: two values out, two in, one out, two in.
double copy_ms(const std::vector<float>& source, std::vector<float>& target) {
  const auto start = Clock::now();
  for (int i = 0; i < 7; ++i) std::memcpy(target.data(), source.data(), source.size() * 4);
  return ms_since(start);
}

struct Times {
  std::vector<double> total, put_ms, merge_ms, get_ms;
  void add(const Round& round) {
    total.push_back(round.total());
    put_ms.push_back(round.put_ms);
    merge_ms.push_back(round.merge_ms);
    get_ms.push_back(round.get_ms);
  }
};

void bench(const char* transport, const std::string& uri, std::int64_t count, int rounds) {
  const RedisOptions options = value_or_exit(parse_redis_uri(uri));
  const ParameterLayout layout = layout_of(count);
  Cluster plain(options, layout, 0), fenced(options, layout, 1);
  Times plain_times, fenced_times;
  std::vector<double> copies;
  for (int i = 0; i < rounds + 2; ++i) {
    const auto run = static_cast<std::uint64_t>(i + 1);
    const Round plain_round = plain.round(run), fenced_round = fenced.round(run);
    if (i < 2) continue;  // first touches of memory on both sides
    plain_times.add(plain_round);
    fenced_times.add(fenced_round);
    copies.push_back(copy_ms(plain.workers[0].contribution, plain.workers[0].weights));
  }
  for (const bool is_fenced : {false, true}) {
    const Times& times = is_fenced ? fenced_times : plain_times;
    std::printf("| %s%s | %.2f M | %.2f | %.2f | %.2f | %.2f | %.2f |\n", transport,
                is_fenced ? ", fenced" : "", static_cast<double>(count) / 1e6,
                median(times.total), median(times.put_ms), median(times.merge_ms),
                median(times.get_ms), median(copies));
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace speedo

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  speedo::test::RedisServer server;
  std::printf("| transport | floats | round ms | put | merge and publish | get | 7 memcpy |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const std::int64_t count : {std::int64_t{431080}, std::int64_t{60965224}}) {
    speedo::bench("unix", server.unix_uri(), count, count < 1000000 ? rounds * 20 : rounds);
    speedo::bench("TCP", server.tcp_uri(), count, count < 1000000 ? rounds * 20 : rounds);
  }
}
