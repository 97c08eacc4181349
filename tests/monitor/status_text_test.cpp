#include "monitor/status_text.hpp"

#include <sstream>

#include <nlohmann/json.hpp>

#include "monitor/some_status.hpp"
#include "monitor/status_json.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("A status fits every width, and says the most important in each") {
  for (int width = 20; width <= 200; ++width) {
    const auto lines = lines_of(status_text(test::some_status(), width, false));
    INFO(width);
    REQUIRE(lines.size() == 8);
    for (const std::string& line : lines) {
      INFO(line);
      CHECK(static_cast<int>(line.size()) <= width);
    }
    CHECK(lines[1].starts_with("iteration 500/1000"));
    CHECK(lines[4].find("STATE") != std::string::npos);
    CHECK(lines[5].find("training") != std::string::npos);
    CHECK(lines[6].find("gone") != std::string::npos);
  }
}

TEST_CASE("Eighty columns show each worker's figures, a wide terminal its phases as well") {
  const std::string narrow = status_text(test::some_status(), 80, false);
  for (const char* title : {"WORKER", "STATE", "ITER", "IMAGES/S", "STALE", "BYTES/S", "SEEN",
                            "DROPPED"}) {
    INFO(title);
    CHECK(narrow.find(title) != std::string::npos);
  }
  CHECK(narrow.find("BWD") == std::string::npos);
  const std::string wide = status_text(test::some_status(), 160, false);
  for (const char* title : {"DEVICE", "DATA", "FWD", "BWD", "EXCH", "WAIT"}) {
    INFO(title);
    CHECK(wide.find(title) != std::string::npos);
  }
  CHECK(wide.find("40 %") != std::string::npos);
  CHECK(wide.find("12MiB") != std::string::npos);
  CHECK(wide.find("b/1/0 has been gone for 1:23: its connection broke") != std::string::npos);
  CHECK(wide.find("staleness 0.25") != std::string::npos);
  CHECK(wide.find("dropped 3  rejected 2  late 9") != std::string::npos);
  CHECK(wide.find("bad records 7  parsers ended 4") != std::string::npos);
  CHECK(wide.find("ETA 0:50") != std::string::npos);
  CHECK(wide.find('\x1b') == std::string::npos);
  CHECK(status_text(test::some_status(), 160, true).find("\x1b[1m") != std::string::npos);
}

TEST_CASE("A pause, a store that is away and the end stand where they are seen") {
  JobStatus status = test::some_status();
  status.progress.paused = true;
  status.workers_min = 4;
  status.store_away = true;
  const std::string text = status_text(status, 100, false);
  CHECK(text.find("PAUSED: 1 of 4 workers") != std::string::npos);
  CHECK(text.find("STORE AWAY") != std::string::npos);
  status.over = true;
  CHECK(status_text(status, 100, false).find("OVER") != std::string::npos);
  CHECK_FALSE(seconds_left(status));
}

TEST_CASE("A job without workers is shown, too") {
  const std::string text = status_text(JobStatus{}, 80, false);
  CHECK(text.find("waiting for workers  0 workers") != std::string::npos);
  CHECK(text.find("WORKER") == std::string::npos);
}

TEST_CASE("Bytes are short") {
  CHECK(short_bytes(0) == "0B");
  CHECK(short_bytes(999) == "999B");
  CHECK(short_bytes(1023) == "1.0KiB");
  CHECK(short_bytes(12.3 * 1024 * 1024) == "12MiB");
  CHECK(short_bytes(5e12) == "4657GiB");
}

TEST_CASE("The JSON of a status has every figure, null where nothing is known") {
  const auto object = nlohmann::json::parse(status_json(test::some_status()));
  CHECK(object["state"] == "training");
  CHECK(object["iteration"] == 500);
  CHECK(object["ignored"] == 9);
  CHECK(object["loss"] == 0.25);
  CHECK(object["test_loss"].is_null());
  CHECK(object["seconds_left"] == 50.0);
  CHECK(object["mean_staleness"] == 0.25);
  REQUIRE(object["workers"].size() == 2);
  CHECK(object["workers"][0]["gone_why"].is_null());
  CHECK(object["workers"][0]["phase_seconds"]["backward"] == 0.0004);
  CHECK(object["workers"][1]["state"] == "gone");
  CHECK(object["workers"][1]["gone_why"] == "its connection broke");
  const auto empty = nlohmann::json::parse(status_json(JobStatus{}));
  CHECK(empty["loss"].is_null());
  CHECK(empty["seconds_left"].is_null());
  CHECK(empty["state"] == "waiting for workers");
}

TEST_CASE("A line tells where each worker's time went") {
  const auto lines = phase_lines(test::some_status());
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] ==
        "b/1/0: 10 runs, 10 % data, 20 % forward, 40 % backward, 20 % exchange, 10 % wait");
}

}  // namespace
}  // namespace speedo
