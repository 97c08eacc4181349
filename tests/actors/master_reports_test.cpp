// What a master's hooks hear, and when, where they are slow.
#include "actors/master_reports.hpp"

#include <algorithm>
#include <cstdint>
#include <future>
#include <new>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace speedo {
namespace {

// Hooks that keep what they are told; the first report is not taken before it may be.
struct SlowHooks {
  SlowHooks() {
    hooks.on_progress = [this](const MasterProgress& progress, const std::vector<TestScores>*) {
      if (told.empty()) may.get_future().get();
      told.push_back(progress.iteration);
    };
    hooks.on_status = [this](JobStatus status) { statuses.push_back(status.progress.merges); };
  }

  MasterHooks hooks;
  std::promise<void> may;
  std::vector<std::uint64_t> told, statuses;  // of the reports' thread until it is flushed
};

MasterProgress at(std::uint64_t iteration) {
  MasterProgress progress;
  progress.iteration = iteration;
  return progress;
}

JobStatus status_at(std::uint64_t merges) {
  JobStatus status;
  status.progress.merges = merges;
  return status;
}

}  // namespace

TEST_CASE("hooks that take nothing hold up nobody, and hear of all in order afterwards") {
  SlowHooks slow;
  MasterReports reports(slow.hooks);
  reports.progress(at(1), nullptr);
  const std::vector<TestScores> scores(1);
  reports.progress(at(2), &scores);
  reports.status(status_at(1));
  reports.status(status_at(2));
  reports.progress(at(3), nullptr);
  slow.may.set_value();
  CHECK(reports.flush());
  CHECK(slow.told == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(slow.statuses == std::vector<std::uint64_t>{2});
}

TEST_CASE("of more progress than may wait the newest is told, and then all again") {
  SlowHooks slow;
  MasterReports reports(slow.hooks);
  const std::uint64_t most = MasterReports::kWaitingMax;
  for (std::uint64_t i = 1; i <= most + 5; ++i) reports.progress(at(i), nullptr);
  slow.may.set_value();
  CHECK(reports.flush());
  REQUIRE(slow.told.size() == most + 1);
  CHECK(slow.told[most - 1] == most);
  CHECK(slow.told.back() == most + 5);
  reports.progress(at(most + 6), nullptr);
  CHECK(reports.flush());
  CHECK(slow.told.back() == most + 6);
}

TEST_CASE("what comes while the thread rests is told in order, though nobody flushes") {
  MasterHooks hooks;
  std::promise<void> first, last;
  std::vector<std::uint64_t> told;
  hooks.on_progress = [&](const MasterProgress& progress, const std::vector<TestScores>*) {
    told.push_back(progress.iteration);
    if (progress.iteration == 1) first.set_value();
    if (progress.iteration == 100) last.set_value();
  };
  MasterReports reports(hooks);
  reports.progress(at(1), nullptr);
  first.get_future().get();
  for (std::uint64_t i = 2; i <= 100; ++i) reports.progress(at(i), nullptr);
  last.get_future().get();
  REQUIRE(told.size() == 100);
  CHECK(std::ranges::is_sorted(told));
}

TEST_CASE("a hook that throws breaks its master's reports off, and is its error") {
  MasterHooks hooks;
  int told = 0;
  hooks.on_progress = [&told](const MasterProgress&, const std::vector<TestScores>*) {
    told += 1;
    throw std::bad_alloc();
  };
  MasterReports reports(hooks);
  CHECK(!reports.are_broken());
  reports.progress(at(1), nullptr);
  const auto flushed = reports.flush();
  REQUIRE(!flushed);
  CHECK(flushed.error().code == ErrorCode::kInternal);
  CHECK(flushed.error().message.starts_with("the master's reports broke off"));
  CHECK(reports.are_broken());
  reports.progress(at(2), nullptr);
  CHECK(!reports.flush());
  CHECK(told == 1);
}

TEST_CASE("reports that nobody takes are waited for as long as they may") {
  SlowHooks slow;
  MasterReports reports(slow.hooks);
  reports.progress(at(1), nullptr);
  reports.flush_within(std::chrono::milliseconds{1});
  slow.may.set_value();
  CHECK(reports.flush());
  CHECK(slow.told == std::vector<std::uint64_t>{1});
}

}  // namespace speedo
