#include "monitor/job_monitor.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

#include "monitor/some_status.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"

namespace speedo {
namespace {

struct Watched {
  test::ManualClock clock;
  JobMonitor monitor{clock, [] { return ProcessFigures{.version = "1", .redis_errors = {}}; }};
  HttpAnswer get(const char* path) const { return monitor.answer(path).value(); }
};

TEST_CASE("Before the job begins the master is healthy and not ready") {
  const Watched watched;
  CHECK(watched.get("/healthz").status == 200);
  CHECK(watched.get("/readyz").status == 503);
  CHECK(watched.get("/status.json").status == 503);
  CHECK(watched.get("/metrics").status == 200);
  CHECK(watched.get("/curves.json").status == 200);
  CHECK_FALSE(watched.monitor.answer("/nothing"));
}

TEST_CASE("A master whose loop goes round is healthy, and ready as long as its store answers") {
  Watched watched;
  watched.monitor.take(test::some_status());
  CHECK(watched.get("/healthz").status == 200);
  CHECK(watched.get("/readyz").status == 200);
  CHECK(nlohmann::json::parse(watched.get("/status.json").body)["iteration"] == 500);
  JobStatus away = test::some_status();
  away.store_away = true;
  watched.monitor.take(away);
  CHECK(watched.get("/readyz").status == 503);
  CHECK(watched.get("/healthz").status == 200);
  watched.clock.advance(std::chrono::seconds(20));
  CHECK(watched.get("/healthz").status == 503);
  JobStatus over = test::some_status();
  over.over = true;
  watched.monitor.take(over);
  watched.clock.advance(std::chrono::hours(1));
  CHECK(watched.get("/healthz").status == 200);  // it may wait for its --sleep-after-finish
  CHECK(watched.get("/readyz").body == "the job is over\n");
}

TEST_CASE("The page is whole, and asks for nothing from elsewhere") {
  const Watched watched;
  const HttpAnswer page = watched.get("/");
  CHECK(page.type == "text/html; charset=utf-8");
  CHECK(page.body.ends_with("</html>\n"));
  for (const char* outside : {"http://", "https://", "src=", "@import", "url("}) {
    INFO(outside);
    const std::size_t found = page.body.find(outside);
    const bool is_namespace =
        found != std::string::npos && page.body.find("http://www.w3.org/2000/svg") == found;
    CHECK((found == std::string::npos || is_namespace));
  }
  CHECK(page.body.find("prefers-color-scheme: dark") != std::string::npos);
}

}  // namespace
}  // namespace speedo
