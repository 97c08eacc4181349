#include "cli/report/curve_file.hpp"

#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "cli/report/master_reporter.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

struct CurvePlace {
  TempDir folder;
  test::ManualClock clock;

  std::string path() const { return (folder / "curve.csv").string(); }
  std::unique_ptr<CurveFile> open(std::uint64_t display = 10) {
    auto curve = CurveFile::create({path(), display, 100}, clock);
    INFO((curve ? "" : curve.error().message));
    REQUIRE(curve);
    return std::move(*curve);
  }
  std::string text() const {
    std::ifstream stream(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::ifstream stream(path());
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
};

const std::string kCurveHeader(CurveFile::header());

TEST_CASE("A curve has a line for each point and each test") {
  CurvePlace place;
  const auto curve = place.open();
  curve->begin(0);
  place.clock.advance(std::chrono::milliseconds(1500));
  curve->add_test(0, 0.125F, 2.5F);
  CHECK_FALSE(curve->is_due(9));
  CHECK(curve->is_due(10));
  curve->add({.iteration = 10, .loss = 0.5F, .rate = 0.25F, .workers = 3, .staleness = 1.5});
  CHECK_FALSE(curve->is_due(10));
  CHECK_FALSE(curve->is_due(19));
  CHECK(curve->is_due(21));
  CHECK(curve->is_due(100));
  place.clock.advance(std::chrono::milliseconds(500));
  curve->add({.iteration = 21, .loss = 0.25F, .rate = 0.25F});
  curve->add_test(20, std::numeric_limits<float>::quiet_NaN(), 0.75F);
  CHECK(place.text() == kCurveHeader +
                            "0,1.500,,0.125,2.5,,,\n"
                            "10,1.500,0.5,,,0.25,3,1.5\n"
                            "21,2.000,0.25,,,0.25,1,0\n"
                            "20,2.000,,,0.75,,,\n");
}

TEST_CASE("Without a display a curve has a line for each iteration, and nothing twice") {
  CurvePlace place;
  const auto curve = place.open(0);
  curve->begin(0);
  for (const std::uint64_t iteration : {1, 2, 2, 1, 3}) {
    if (curve->is_due(iteration)) curve->add({.iteration = iteration, .loss = 1.0F});
    curve->add({.iteration = iteration, .loss = 1.0F});
    curve->add_test(iteration, 0.5F, 0.5F);
  }
  curve->add({.iteration = 4, .loss = std::numeric_limits<float>::quiet_NaN()});
  CHECK(place.lines().size() == 1 + 3 + 3);
}

TEST_CASE("A resumed training goes on in its curve: no line twice, none of a lost iteration") {
  CurvePlace place;
  {
    const auto curve = place.open();
    curve->begin(0);
    for (const std::uint64_t iteration : {10, 20, 30, 40}) {
      place.clock.advance(std::chrono::seconds(1));
      curve->add({.iteration = iteration, .loss = 1.0F, .rate = 0.1F});
      curve->add_test(iteration, 0.5F, 0.5F);
    }
  }
  // Killed within a line, and resumed from iteration 25.
  place.write(place.text() + "50,5.0");
  const auto curve = place.open();
  curve->begin(25);
  curve->begin(0);  // The first one counts.
  place.clock.advance(std::chrono::seconds(1));
  curve->add({.iteration = 20, .loss = 9.0F});
  curve->add_test(20, 0.9F, 0.9F);
  CHECK(curve->is_due(30));
  curve->add({.iteration = 30, .loss = 2.0F, .rate = 0.1F});
  curve->add_test(30, 0.25F, 0.5F);
  CHECK(place.text() == kCurveHeader +
                            "10,1.000,1,,,0.1,1,0\n10,1.000,,0.5,0.5,,,\n"
                            "20,2.000,1,,,0.1,1,0\n20,2.000,,0.5,0.5,,,\n"
                            "30,3.000,2,,,0.1,1,0\n30,3.000,,0.25,0.5,,,\n");
}

TEST_CASE("A training from the start begins its curve anew; what is damaged is left out") {
  CurvePlace place;
  place.write(kCurveHeader + "10,1.000,1,,,0.1,1,0\n");
  place.open()->begin(0);
  CHECK(place.text() == kCurveHeader);
  place.write(kCurveHeader + "10,1.000,1,,,0.1,1,0\nnonsense\n,,,,,,,\n10,2.0,3,,,1,1,1\n" +
              "11,1.0,1,,,0.1,1\n12,x,1,,,0.1,1,0\n-1,1,1,,,0.1,1,0\n");
  place.open()->begin(50);
  CHECK(place.text() == kCurveHeader + "10,1.000,1,,,0.1,1,0\n");
  place.write(kCurveHeader.substr(0, 7));  // killed within the first line
  place.open()->begin(50);
  CHECK(place.text() == kCurveHeader);
}

TEST_CASE("A file that is no curve, a folder and a place that cannot be written are named errors") {
  CurvePlace place;
  const auto error = [](const std::string& path) {
    const auto curve = CurveFile::create({path, 1, 1});
    REQUIRE_FALSE(curve);
    CHECK(curve.error().message.find("'" + path + "'") != std::string::npos);
    return curve.error().code;
  };
  for (const char* text : {"a,b,c\n1,2,3\n", "x", "\n", "iteration,other\n"}) {
    INFO(text);
    place.write(text);
    CHECK(error(place.path()) == ErrorCode::kData);
    CHECK(place.text() == text);
  }
  CHECK(error(place.folder.path().string()) == ErrorCode::kCannotWrite);
  CHECK(error((place.folder / "no" / "where.csv").string()) == ErrorCode::kCannotWrite);
  const auto none = CurveFile::create({});
  REQUIRE(none);
  (*none)->begin(0);
  CHECK_FALSE((*none)->is_due(1));
  (*none)->add({.iteration = 1});
}

TEST_CASE("A disk that is full ends a curve after its last whole line") {
  CurvePlace place;
  const auto curve = place.open();
  curve->begin(0);
  curve->add({.iteration = 10, .loss = 1.0F, .rate = 0.1F});
  const std::string whole = place.text();
  struct rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit full = before;
  full.rlim_cur = whole.size() + 5;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
  curve->add({.iteration = 20, .loss = 1.0F, .rate = 0.1F});
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  curve->add({.iteration = 30, .loss = 1.0F, .rate = 0.1F});
  CHECK(place.text() == whole);
}

TEST_CASE("A cluster's curve has the mean loss of average_loss iterations, rate and staleness") {
  CurvePlace place;
  caffe::SolverParameter solver;
  solver.set_base_lr(0.5F);
  solver.set_lr_policy("fixed");
  solver.set_display(2);
  solver.set_max_iter(100);
  solver.set_average_loss(2);
  auto curve = CurveFile::create(curve_options(place.path(), solver), place.clock);
  REQUIRE(curve);
  MasterReporter reporter(solver, std::vector<Schedule>(1), place.clock, curve->get());
  MasterProgress progress;
  progress.training = true;
  progress.workers_alive = 2;
  progress.iteration = progress.merges = 10;  // of an earlier master
  progress.contributions = 20;
  progress.staleness_sum = 1000.0;
  reporter.on_progress(progress, nullptr);
  for (const float loss : {8.0F, 4.0F, 2.0F, 1.0F}) {
    progress.iteration = ++progress.merges;
    progress.contributions += 2;
    progress.staleness_sum += 3.0;
    progress.last_loss = loss;
    reporter.on_progress(progress, nullptr);
  }
  std::vector<TestScores> scores(1);
  scores[0].accuracy = 0.75F;
  scores[0].loss = 0.5F;
  progress.iteration = 14;
  reporter.on_progress(progress, &scores);
  CHECK(place.text() == kCurveHeader +
                            "12,0.000,6,,,0.5,2,1.5\n"
                            "14,0.000,1.5,,,0.5,2,1.5\n"
                            "14,0.000,,0.75,0.5,,,\n");
}

}  // namespace
}  // namespace speedo
