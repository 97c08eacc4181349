#include "base/trace.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <speedo/base/thread_name.hpp>

#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

nlohmann::json events_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  auto events = nlohmann::json::parse(stream, nullptr, false);
  REQUIRE(events.is_array());
  return events;
}

std::size_t count(const nlohmann::json& events, const std::string& name) {
  std::size_t found = 0;
  for (const auto& event : events) found += event["name"] == name ? 1 : 0;
  return found;
}

TEST_CASE("A trace holds the spans of all threads, with the names of threads and process") {
  const TempDir folder;
  const std::filesystem::path file = folder / "trace.json";
  CHECK_FALSE(is_tracing());
  {
    const auto trace = Trace::start(file, "a \"test\"");
    REQUIRE(trace);
    CHECK(is_tracing());
    std::thread([] {
      name_thread("helper");
      const TraceSpan inner("inner");
    }).join();
  }
  CHECK_FALSE(is_tracing());
  const auto events = events_of(file);
  CHECK(count(events, "inner") == 1);
  std::set<std::string> names;
  for (const auto& event : events) {
    if (event["ph"] == "M") names.insert(event["args"]["name"].get<std::string>());
  }
  CHECK(names.count("a \"test\"") == 1);
  CHECK(names.count("helper") == 1);
  for (const auto& event : events) {
    if (event["ph"] != "X") continue;
    CHECK(event["dur"].get<double>() >= 0.0);
    CHECK(event["ts"].get<double>() > 1.6e15);  // microseconds since 1970
  }
}

// Adds a span to the file once it is told to; the exit code says whether that went well.
int join_trace(const std::filesystem::path& file, int wait_for) {
  char go = 0;
  if (::read(wait_for, &go, 1) != 1) return 1;
  auto trace = Trace::start(file, "child");
  if (!trace) return 2;
  { const TraceSpan span("of the child"); }
  trace->reset();
  return 0;
}

TEST_CASE("Processes of one machine share a file, which a later trace begins anew") {
  const TempDir folder;
  const std::filesystem::path file = folder / "trace.json";
  for (int round = 0; round < 2; ++round) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(join_trace(file, ends[0]));
    auto trace = Trace::start(file, "parent");
    REQUIRE(trace);
    REQUIRE(::write(ends[1], "x", 1) == 1);
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    { const TraceSpan span("of the parent"); }
    trace->reset();
    ::close(ends[0]);
    ::close(ends[1]);
    const auto events = events_of(file);
    CHECK(count(events, "process_name") == 2);
    CHECK(count(events, "of the child") == 1);
    CHECK(count(events, "of the parent") == 1);
  }
}

TEST_CASE("A folder that is not there, and a disk without room, are refused at the start") {
  const auto nowhere = Trace::start("/no/such/folder/trace.json", "test");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == ErrorCode::kCannotWrite);
  CHECK(nowhere.error().message.find("/no/such/folder/trace.json") != std::string::npos);
  const test::LogCapture log;
  const auto full = Trace::start("/dev/full", "test");
  REQUIRE_FALSE(full);
  CHECK(full.error().code == ErrorCode::kCannotWrite);
  CHECK_FALSE(log.has("training goes on"));
  CHECK_FALSE(is_tracing());
}

TEST_CASE("A disk that fills up ends the trace and nothing else") {
  const TempDir folder;
  const std::filesystem::path file = folder / "trace.json";
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{200000, before.rlim_max};
  {
    const auto trace = Trace::start(file, "test");
    REQUIRE(trace);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (int i = 0; i < 10000; ++i) const TraceSpan span("step");
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(std::filesystem::file_size(file) <= 200000);
  CHECK_FALSE(is_tracing());
}

}  // namespace
}  // namespace speedo
