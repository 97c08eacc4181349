#include "measure/calibrate/calibrate_exchange.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/codec/codec.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/train/merge.hpp>

#include "caffe.pb.h"
#include "measure/processor_time.hpp"
#include "measure/step_timer.hpp"
#include "sim/plan/cost_exchange.hpp"
#include "train/job/job_solver.hpp"
#include "train/merge/merger_engine.hpp"

namespace speedo {

namespace {

constexpr std::uint64_t kSmallFloats = 16;
constexpr int kRoundsMin = 10;
constexpr int kWarmUpRounds = 3;
constexpr int kMessages = 300;
constexpr std::uint64_t kFirstTerm = 0;
constexpr std::uint64_t kNoCheckpoints = std::numeric_limits<std::uint64_t>::max();

ParameterLayout layout_of(std::uint64_t floats) {
  ParameterLayout layout;
  ParameterSlot slot;
  slot.layer = "all";
  slot.shape = Shape({static_cast<std::int64_t>(floats)});
  layout.add(slot);
  return layout;
}

// Repeats `work` for so long, and counts who was busy meanwhile.
Result<TransferTimes> repeat(const PrivateRedis& redis, double seconds,
                             const std::function<Result<void>()>& work) {
  for (int i = 0; i < kWarmUpRounds; ++i) SPEEDO_TRY(work());
  std::vector<double> times;
  const double server_before = redis.cpu_seconds();
  const double client_before = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
  const Instant begin = steady_clock().now();
  while (seconds_since(begin) < seconds || times.size() < kRoundsMin) {
    const Instant start = steady_clock().now();
    SPEEDO_TRY(work());
    times.push_back(seconds_since(start));
  }
  const auto rounds = static_cast<double>(times.size());
  return TransferTimes{undisturbed(times), (redis.cpu_seconds() - server_before) / rounds,
                       (processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - client_before) / rounds};
}

// Writing and reading one record of so many floats.
class Record {
 public:
  Record(RecordStore& store, std::uint64_t floats)
      : store_(store), layout_(layout_of(floats)), values_(floats, 1e-6F) {}

  Result<void> write() {
    RecordInfo info;
    info.model = layout_.digest();
    info.version = ++version_;
    info.element_count = values_.size();
    return put(store_, weights_key(), info, values_);
  }
  Result<void> read() {
    if (auto info = get(store_, weights_key(), layout_.digest(), values_); !info) {
      return info.error();
    }
    return {};
  }

 private:
  RecordStore& store_;
  const ParameterLayout layout_;
  std::vector<float> values_;
  std::uint64_t version_ = 0;
};

Result<void> measure_record(ParameterStore& store, const PrivateRedis& redis, std::uint64_t floats,
                            double seconds, TransferTimes& read, TransferTimes& write) {
  Record record(store, floats);
  SPEEDO_ASSIGN(write, repeat(redis, seconds, [&] { return record.write(); }));
  SPEEDO_ASSIGN(read, repeat(redis, seconds, [&] { return record.read(); }));
  return store.clear();
}

// What a merge of one contribution is made with.
struct MergeCase {
  std::shared_ptr<ParameterStore> store;
  UpdateSpec update;
  caffe::SolverParameter solver;
  std::function<Result<std::unique_ptr<Backend>>()> make_backend;
};

// Through the master's own engine.
Result<TransferTimes> measure_merge(const MergeCase& merge, const PrivateRedis& redis,
                                    std::uint64_t floats, double seconds) {
  const ParameterLayout layout = layout_of(floats);
  Checkpoint start;
  start.weights.assign(floats, 0.5F);
  MergerConfig config;
  config.stages = {merge.update};
  config.term = kFirstTerm;
  config.publish_interval = kNoCheckpoints;
  SPEEDO_ASSIGN(const std::unique_ptr<MergerEngine> merger,
                MergerEngine::create(config, layout, merge.solver, std::move(start), merge.store,
                                     merge.make_backend));
  if (auto entered = merger->enter_stage(0, ""); !entered) return entered.error();
  RecordInfo info;
  info.model = layout.digest();
  info.version = 1;
  info.element_count = floats;
  const std::vector<float> delta(floats, 1e-9F);
  SPEEDO_TRY(put(*merge.store, contribution_key(kFirstTerm, 0), info, delta));
  MergeJob job{};
  job.contributions.push_back({WorkerId{0}, RunId{1}, 1.0F});
  SPEEDO_ASSIGN(const TransferTimes times, repeat(redis, seconds, [&]() -> Result<void> {
    auto merged = merger->merge(job);
    if (!merged) return merged.error();
    return {};
  }));
  merger->close();
  SPEEDO_TRY(merge.store->clear());
  return times;
}

// Bytes a second of `work`, which passes through so many floats.
double rate_of(std::uint64_t floats, double seconds, const std::function<void()>& work) {
  std::uint64_t rounds = 0;
  const Instant start = steady_clock().now();
  do {
    work();
    rounds += 1;
  } while (seconds_since(start) < seconds);
  return static_cast<double>(rounds * floats * sizeof(float)) / seconds_since(start);
}

double measure_add(std::uint64_t floats, double seconds) {
  const std::vector<float> weights(floats, 0.5F), delta(floats, 1e-9F);
  std::vector<float> target(floats);
  return rate_of(floats, seconds / 4.0, [&] { merge_add(weights, delta, 1.0F, target); });
}

double measure_copy(std::uint64_t floats, double seconds) {
  const std::vector<float> weights(floats, 0.5F);
  std::vector<float> target(floats, 0.0F);
  return rate_of(floats, seconds / 8.0, [&] { std::ranges::copy(weights, target.begin()); });
}

// Bytes that a codec makes of a chunk, beside their rates.
sim::CodecCosts measure_codec(const CodecSpec& spec, std::span<const float> values,
                              double seconds) {
  std::vector<float> residual(values.size()), decoded(values.size());
  std::vector<std::byte> bytes(encoded_bytes_max(spec, values.size()));
  std::size_t size = 0;
  sim::CodecCosts costs;
  costs.name = to_string(spec);
  costs.encode_bytes_per_second = rate_of(values.size(), seconds, [&] {
    const auto written = encode(spec, values, residual, bytes);
    SPEEDO_ASSERT(written.has_value());
    size = *written;
  });
  costs.decode_bytes_per_second = rate_of(values.size(), seconds, [&] {
    decode(spec, std::span(bytes).first(size), decoded).ignore("it was encoded just now");
  });
  costs.ratio = static_cast<double>(values.size_bytes()) / static_cast<double>(size);
  return costs;
}

// Answers every byte until the other side closes.
void echo(int socket) {
  char byte = 0;
  while (::read(socket, &byte, 1) == 1) {
    if (::write(socket, &byte, 1) != 1) break;
  }
  ::close(socket);
}

// A connected pair over 127.0.0.1; {-1, -1} if there is none to be had.
std::array<int, 2> loopback_pair() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  const int near = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int far = -1;
  if (::bind(listener, any, length) == 0 && ::listen(listener, 1) == 0 &&
      ::getsockname(listener, any, &length) == 0 && ::connect(near, any, length) == 0) {
    far = ::accept(listener, nullptr, nullptr);
  }
  ::close(listener);
  const int on = 1;
  for (const int socket : {near, far}) {
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return {near, far};
}

double measure_message() {
  const auto [near, far] = loopback_pair();
  if (far < 0) return 0.0;
  std::jthread other([far_end = far] { echo(far_end); });
  std::vector<double> times;
  char byte = 1;
  for (int i = 0; i < kMessages; ++i) {
    const Instant start = steady_clock().now();
    if (::write(near, &byte, 1) != 1 || ::read(near, &byte, 1) != 1) break;
    times.push_back(seconds_since(start) / 2.0);
  }
  ::close(near);
  return times.empty() ? 0.0 : median(std::move(times));
}

}  // namespace

std::vector<sim::CodecCosts> measure_codecs(double seconds) {
  const std::vector<float> values = sim::usual_values();
  std::vector<sim::CodecCosts> codecs;
  for (const CodecKind kind : {CodecKind::kBf16, CodecKind::kFp16, CodecKind::kInt8,
                               CodecKind::kThreshold, CodecKind::kTopK, CodecKind::kOneBit}) {
    CodecSpec spec;
    spec.kind = kind;
    codecs.push_back(measure_codec(spec, values, seconds));
  }
  return codecs;
}

Result<ExchangeTimes> measure_exchange(const CalibrateParts& parts, const PrivateRedis& redis,
                                       const JobSpec& job, std::uint64_t floats, double seconds) {
  SPEEDO_ASSIGN(const std::shared_ptr<ParameterStore> store,
                parts.open_store(StoreAddress(redis.uri()), "calibrate"));
  ExchangeTimes times;
  SPEEDO_TRY(measure_record(*store, redis, kSmallFloats, seconds / 2.0, times.read_small,
                            times.write_small));
  SPEEDO_TRY(measure_record(*store, redis, floats, seconds, times.read, times.write));
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(job));
  MergeCase merge{store, {}, std::move(solver), parts.trainer({}).make_backend};
  SPEEDO_ASSIGN(times.merge, measure_merge(merge, redis, floats, seconds));
  merge.update.kind = UpdateKind::kGradientOnly;
  SPEEDO_ASSIGN(times.merge_gradients, measure_merge(merge, redis, floats, seconds));
  times.add_bytes_per_second = measure_add(floats, seconds);
  times.copy_bytes_per_second = measure_copy(floats, seconds);
  times.message_seconds = measure_message();
  return times;
}

}  // namespace speedo
