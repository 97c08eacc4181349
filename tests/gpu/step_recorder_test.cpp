// Steps that are recorded and replayed: on the recording double, with what no graph can hold, and
// with planted faults.

#include "gpu/steps/step_recorder.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/elementwise/elementwise.hpp"
#include "gpu/faulty_driver.hpp"
#include "gpu/gpu_device.hpp"
#include "gpu/launch/launch.hpp"
#include "support/catch.hpp"
#include "support/gpu/recording_driver.hpp"

namespace speedo::gpu {
namespace {

using test::CallLog;
using test::DriverFault;
using test::FaultyDriver;
using test::RecordingDriver;

constexpr std::int64_t kRecorderLength = 300;
constexpr std::size_t kRecorderBytes = kRecorderLength * sizeof(float);

// x grows by one and is masked anew in every step; y is what it was before.
class RecorderRig {
 public:
  explicit RecorderRig(DriverFault fault = DriverFault::kNone,
                       const test::RecordingOptions& options = {.keeps_history = true})
      : driver(log, options) {
    auto made = StepRecorder::make(std::make_unique<FaultyDriver>(driver, fault));
    REQUIRE(made.has_value());
    recorder = std::move(*made);
    stream = recorder->create_stream();
    other = recorder->create_stream();
    auto opened = Queue::make(*recorder, stream);
    REQUIRE(opened.has_value());
    queue = std::make_unique<Queue>(std::move(*opened));
    for (float** array : {&x, &y, &mask, &spare}) {
      *array = static_cast<float*>(*recorder->allocate(kRecorderBytes));
      fill(*queue, kRecorderLength, 0.0F, *array);
    }
    pinned = static_cast<float*>(*recorder->allocate_pinned(kRecorderBytes));
    event = recorder->create_event();
    recorder->record(event, stream);
    recorder->synchronize(stream);
  }
  ~RecorderRig() { close(); }
  RecorderRig(const RecorderRig&) = delete;
  RecorderRig& operator=(const RecorderRig&) = delete;

  void close() {
    if (recorder == nullptr) return;
    recorder->synchronize(stream);
    recorder->synchronize(other);
    queue.reset();
    for (float* array : {x, y, mask, spare}) {
      if (array != nullptr) recorder->free(array);
    }
    recorder->free_pinned(pinned);
    recorder->destroy(event);
    recorder->destroy(stream);
    recorder->destroy(other);
    recorder.reset();
  }

  void step(std::uint64_t seed) {
    copy(*queue, kRecorderLength, x, y);
    map(*queue, affine(1.0F, 1.0F), kRecorderLength, x, x);
    dropout_mask(*queue, {{1, kRecorderLength}, {}}, 0.5F, seed, mask);
  }
  std::vector<float> values(const float* array) {
    std::vector<float> host(kRecorderLength);
    driver.copy(stream, pinned, array, kRecorderBytes);
    driver.synchronize(stream);
    std::copy_n(pinned, kRecorderLength, host.begin());
    return host;
  }
  std::string violations() const {
    std::string all;
    for (const std::string& each : log->violations()) all += each + "; ";
    return all;
  }

  std::shared_ptr<CallLog> log = std::make_shared<CallLog>();
  RecordingDriver driver;
  std::unique_ptr<StepRecorder> recorder;
  std::unique_ptr<Queue> queue;
  StreamHandle stream = nullptr, other = nullptr;
  EventHandle event = nullptr;
  float* x = nullptr;
  float* y = nullptr;
  float* mask = nullptr;
  float* spare = nullptr;  // that step() leaves alone
  float* pinned = nullptr;
};

std::vector<float> mask_of(std::uint64_t seed) {
  RecorderRig rig;
  rig.step(seed);
  return rig.values(rig.mask);
}

std::vector<float> filled(float value) { return std::vector<float>(kRecorderLength, value); }

// Whether three steps, the first recorded and two replayed, left what they should.
bool replays_rightly(RecorderRig& rig) {
  rig.recorder->begin(rig.stream);
  rig.step(7);
  bool is_right = rig.recorder->end().obstacle.empty();
  is_right = is_right && rig.recorder->numbers() == std::vector<std::uint64_t>{7};
  is_right = is_right && rig.values(rig.x) == filled(1.0F) && rig.values(rig.mask) == mask_of(7);
  for (const std::uint64_t seed : {8, 9}) {
    is_right = is_right && rig.recorder->replay(std::vector<std::uint64_t>{seed});
    is_right = is_right && rig.values(rig.mask) == mask_of(seed);
  }
  return is_right && rig.values(rig.x) == filled(3.0F) && rig.values(rig.y) == filled(2.0F);
}

TEST_CASE("a recorded step is done once, and again by every replay with other numbers") {
  const std::uint64_t seed = GENERATE(0, 1, 2);
  RecorderRig rig(DriverFault::kNone, {.seed = seed});
  CHECK(replays_rightly(rig));
  CHECK(rig.driver.graph_launches() == 3);
  rig.close();
  CHECK(rig.violations().empty());
}

TEST_CASE("a replay does the same as the host would, in the same order") {
  RecorderRig rig;
  rig.step(1);
  rig.recorder->synchronize(rig.stream);
  const std::size_t before = rig.driver.history().size();
  rig.step(2);
  rig.recorder->synchronize(rig.stream);
  const auto& history = rig.driver.history();
  const std::vector<std::string> plain(history.begin() + static_cast<std::ptrdiff_t>(before),
                                       history.end());
  rig.recorder->begin(rig.stream);
  rig.step(3);
  REQUIRE(rig.recorder->end().obstacle.empty());
  rig.recorder->synchronize(rig.stream);
  for (int replay = 0; replay < 2; ++replay) {
    const std::size_t start = rig.driver.history().size();
    REQUIRE(rig.recorder->replay(std::vector<std::uint64_t>{4}));
    rig.recorder->synchronize(rig.stream);
    std::vector<std::string> again(rig.driver.history().begin() +
                                       static_cast<std::ptrdiff_t>(start),
                                   rig.driver.history().end());
    // The numbers are copied before.
    REQUIRE(again.size() == plain.size() + 2);
    CHECK(std::vector<std::string>(again.begin() + 2, again.end()) == plain);
  }
}

// What ends a recording, and what is said of it.
struct Interruption {
  const char* word;
  void (*call)(RecorderRig&);
};

TEST_CASE("what no graph can hold ends a recording, and all is done as without one") {
  const Interruption each = GENERATE(values<Interruption>({
      {"the host waits", [](RecorderRig& rig) { rig.recorder->synchronize(rig.stream); }},
      {"the host waits", [](RecorderRig& rig) { rig.recorder->synchronize(rig.event); }},
      {"is done", [](RecorderRig& rig) { rig.recorder->is_done(rig.event); }},
      {"records an event", [](RecorderRig& rig) { rig.recorder->record(rig.event, rig.stream); }},
      {"waits for an event", [](RecorderRig& rig) { rig.recorder->wait(rig.stream, rig.event); }},
      {"memory of the device",
       [](RecorderRig& rig) { rig.recorder->free(*rig.recorder->allocate(64)); }},
      {"pinned",
       [](RecorderRig& rig) { rig.recorder->free_pinned(*rig.recorder->allocate_pinned(64)); }},
      {"makes an event",
       [](RecorderRig& rig) { rig.recorder->destroy(rig.recorder->create_event()); }},
      {"from or to the host",
       [](RecorderRig& rig) { rig.recorder->copy(rig.stream, rig.pinned, rig.y, kRecorderBytes); }},
      {"another stream",
       [](RecorderRig& rig) { rig.recorder->zero(rig.other, rig.spare, kRecorderBytes); }},
      {"random numbers",
       [](RecorderRig& rig) {
         for (std::size_t i = 0; i < StepRecorder::kNumbersMax; ++i) rig.step(i);
       }},
  }));
  RecorderRig rig;
  rig.recorder->begin(rig.stream);
  rig.step(7);
  each.call(rig);
  rig.step(8);
  const auto recorded = rig.recorder->end();
  CAPTURE(each.word, recorded.obstacle);
  CHECK(recorded.is_done);
  CHECK(recorded.obstacle.find(each.word) != std::string::npos);
  CHECK_FALSE(rig.recorder->replay({}));
  CHECK(rig.values(rig.mask) == mask_of(8));
  const float steps = std::string(each.word) == "random numbers"
                          ? static_cast<float>(2 + StepRecorder::kNumbersMax)
                          : 2.0F;
  CHECK(rig.values(rig.x) == filled(steps));
  rig.close();
  CHECK(rig.violations().empty());
}

TEST_CASE("a graph whose memory may be somebody else's is not replayed") {
  RecorderRig rig;
  rig.recorder->begin(rig.stream);
  rig.step(7);
  REQUIRE(rig.recorder->end().obstacle.empty());
  rig.recorder->synchronize(rig.stream);
  rig.recorder->free(std::exchange(rig.y, nullptr));
  CHECK_FALSE(rig.recorder->replay(std::vector<std::uint64_t>{8}));
  rig.close();
  CHECK(rig.violations().empty());
}

TEST_CASE("what CUDA cannot record is not done, and harms nothing that follows") {
  RecorderRig rig(DriverFault::kNone, {.captures_fail = true});
  rig.recorder->begin(rig.stream);
  rig.step(7);
  const auto recorded = rig.recorder->end();
  CHECK_FALSE(recorded.is_done);
  CHECK_FALSE(recorded.obstacle.empty());
  CHECK(rig.values(rig.x) == filled(0.0F));
  rig.step(7);
  CHECK(rig.values(rig.x) == filled(1.0F));
  CHECK(rig.recorder->check().has_value());
}

TEST_CASE("work that is lost in the middle of a recording is an error of the GPU") {
  RecorderRig rig(DriverFault::kNone, {.captures_fail = true});
  rig.recorder->begin(rig.stream);
  rig.step(7);
  rig.recorder->synchronize(rig.stream);
  rig.recorder->end();
  const auto checked = rig.recorder->check();
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().message.find("--cuda-graphs off") != std::string::npos);
}

TEST_CASE("a library that fails while it is recorded loses the recording alone") {
  RecorderRig rig;
  rig.recorder->begin(rig.stream);
  rig.step(7);
  rig.recorder->fail({ErrorCode::kInternal, "a library says no"});
  const auto recorded = rig.recorder->end();
  CHECK_FALSE(recorded.is_done);
  CHECK(recorded.obstacle == "a library says no");
  CHECK(rig.recorder->check().has_value());
  CHECK(rig.values(rig.x) == filled(0.0F));
}

TEST_CASE("other threads wait with streams until a recording is over") {
  RecorderRig rig;
  const EventHandle mark = rig.recorder->create_event();
  rig.recorder->begin(rig.stream);
  rig.step(7);
  std::atomic<bool> has_begun{false}, is_over{false};
  std::thread thread([&] {
    has_begun = true;
    rig.recorder->record(mark, rig.stream);
    is_over = true;
  });
  while (!has_begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(is_over);
  rig.step(8);
  CHECK(rig.recorder->end().obstacle.empty());
  thread.join();
  CHECK(is_over);
  rig.recorder->destroy(mark);
  rig.close();
  CHECK(rig.violations().empty());
}

TEST_CASE("memory that goes on another thread does not hold up a recording that wants some") {
  const auto log = std::make_shared<CallLog>();
  auto recorder = StepRecorder::make(std::make_unique<RecordingDriver>(log));
  REQUIRE(recorder.has_value());
  auto device = GpuDevice::make(**recorder, {});
  REQUIRE(device.has_value());
  auto buffer = (*device)->allocate_pinned(kRecorderBytes);
  REQUIRE(buffer.has_value());
  (*recorder)->begin((*device)->compute_handle());
  std::thread thread([&] { *buffer = Buffer(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto wanted = (*device)->allocate_pinned(kRecorderBytes);
  CHECK(wanted.has_value());
  CHECK_FALSE((*recorder)->end().obstacle.empty());
  thread.join();
  CHECK(log->violations().empty());
}

TEST_CASE("planted faults in the calls for graphs are found") {
  const auto [fault, word] = GENERATE(table<DriverFault, std::string>({
      {DriverFault::kSkipsGraphs, ""},
      {DriverFault::kRepeatsGraphs, ""},
      {DriverFault::kCopiesTooLittle, ""},
      {DriverFault::kKeepsGraphs, "a graph was never destroyed"},
      {DriverFault::kDeadGraph, "the graph was destroyed"},
  }));
  auto rig = std::make_unique<RecorderRig>(fault);
  const bool is_right = replays_rightly(*rig);
  const auto log = rig->log;
  rig.reset();
  std::string violations;
  for (const std::string& each : log->violations()) violations += each + "; ";
  CAPTURE(static_cast<int>(fault), violations, is_right);
  CHECK((word.empty() ? !is_right : violations.find(word) != std::string::npos));
}

// What a backend without a StepRecorder might do.
TEST_CASE("wrong calls while a stream is captured are reported") {
  const auto log = std::make_shared<CallLog>();
  {
    RecordingDriver driver(log);
    const StreamHandle stream = driver.create_stream(), other = driver.create_stream();
    const EventHandle event = driver.create_event();
    driver.record(event, stream);
    driver.synchronize(stream);
    void* const memory = *driver.allocate(kRecorderBytes);
    void* const pinned = *driver.allocate_pinned(kRecorderBytes);
    std::vector<float> pageable(kRecorderLength);
    const auto captured = [&](const std::function<void()>& call) {
      driver.begin_capture(stream);
      driver.zero(stream, memory, kRecorderBytes);
      call();
      const GraphHandle graph = driver.end_capture(stream);
      if (graph != nullptr) driver.destroy(graph);
      return graph != nullptr;
    };
    CHECK(captured([] {}));
    CHECK_FALSE(captured([&] { driver.synchronize(stream); }));
    CHECK(log->has("synchronize: not while a stream is captured"));
    CHECK_FALSE(captured([&] { driver.free(*driver.allocate(64)); }));
    CHECK(log->has("allocate: not while"));
    CHECK(log->has("free: not while"));
    CHECK_FALSE(captured([&] { driver.is_done(event); }));
    CHECK(log->has("is_done: not while"));
    CHECK_FALSE(captured([&] { driver.copy(stream, memory, pageable.data(), kRecorderBytes); }));
    CHECK_FALSE(captured([&] { driver.copy(stream, memory, pinned, kRecorderBytes); }));
    CHECK(log->has("copy: no graph can hold it"));
    CHECK_FALSE(captured([&] { driver.record(event, stream); }));
    CHECK(log->has("record: no graph can hold it"));
    CHECK_FALSE(captured([&] { driver.zero(other, memory, 4); }));
    CHECK(log->has("zero: on another stream"));
    CHECK_FALSE(captured([&] { std::thread([&] { driver.zero(stream, memory, 4); }).join(); }));
    CHECK(log->has("zero: another thread uses a stream that is captured"));

    driver.begin_capture(stream);
    driver.zero(stream, memory, kRecorderBytes);
    const GraphHandle graph = driver.end_capture(stream);
    driver.synchronize(other);
    driver.free(memory);
    driver.launch(stream, graph);
    CHECK(log->has("a graph's zero names block"));
    driver.destroy(graph);
    driver.destroy(graph);
    CHECK(log->has("destroyed before"));
    driver.synchronize(stream);
    driver.free_pinned(pinned);
    driver.destroy(event);
    driver.destroy(stream);
    driver.destroy(other);
  }
}

}  // namespace
}  // namespace speedo::gpu
