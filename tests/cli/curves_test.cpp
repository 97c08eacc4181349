#include "cli/report/curves.hpp"

#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "support/event_records.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

TEST_CASE("The sums of records are Castagnoli's") {
  CHECK(crc32c("123456789") == 0xE3069283U);
  CHECK(crc32c("") == 0U);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAU);
}

TEST_CASE("A file of events has a name whatever its host is called") {
  const std::string name = event_file_name("rack/1\n");
  CHECK(name.starts_with("events.out.tfevents."));
  CHECK(name.find(".rack_1_.") != std::string::npos);
}

TEST_CASE("Events are written as they are read: version, steps, times, tags, values") {
  const TempDir folder;
  auto file = EventFile::create(folder / "new" / "curves");
  REQUIRE(file);
  REQUIRE((*file)->add(7, 1.5, {{"train/loss", 0.25F}, {"train/lr", 0.5F}}));
  REQUIRE((*file)->add(8, 2.5, {{"train/loss", 0.125F}}));
  REQUIRE((*file)->flush());
  const auto events = events_of((*file)->path());
  REQUIRE(events.size() == 3);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[0].wall_time() > 1.7e9);
  CHECK(events[1].step() == 7);
  CHECK(events[1].wall_time() == 1.5);
  REQUIRE(events[1].summary().value_size() == 2);
  CHECK(events[1].summary().value(1).tag() == "train/lr");
  CHECK(events[1].summary().value(1).simple_value() == 0.5F);
  CHECK(events[2].summary().value(0).simple_value() == 0.125F);
  CHECK((*file)->path().filename().string().starts_with("events.out.tfevents."));
}

TEST_CASE("A folder for events that cannot be made is refused for the reason that it has") {
  const TempDir folder;
  std::filesystem::create_symlink("nowhere", folder / "curves");
  const auto file = EventFile::create(folder / "curves");
  REQUIRE_FALSE(file);
  INFO(file.error().message);
  CHECK(file.error().code == ErrorCode::kCannotWrite);
  CHECK(file.error().message.find((folder / "curves").string()) != std::string::npos);
  CHECK(file.error().message.find("No such file") == std::string::npos);
}

TEST_CASE("A value of 0 is there, which readers tell from one that is not") {
  const TempDir folder;
  {
    auto curves = Curves::create((folder / "c").string());
    REQUIRE(curves);
    (*curves)->add(1, {{"staleness", 0.0F}});
  }
  const auto events = events_in(folder / "c");
  REQUIRE(events.size() == 2);
  // The field as bytes: number 2, four bytes.
  const std::string value = events[1].summary().value(0).SerializeAsString();
  CHECK(value.ends_with(std::string("\x15\0\0\0\0", 5)));
}

TEST_CASE("A training that goes on says so first: what was overtaken is dropped by readers") {
  const auto starts_of = [](auto add_first) {
    const TempDir folder;
    {
      auto curves = Curves::create((folder / "c").string());
      REQUIRE(curves);
      (*curves)->go_on(200);
      add_first(**curves);
      (*curves)->add(202, {{"loss", 1.0F}});
    }
    std::vector<std::int64_t> steps;
    const auto events = events_in(folder / "c");
    for (const tensorboard::Event& event : events) {
      if (event.session_log().status() == tensorboard::SessionLog::START) {
        steps.push_back(event.step());
      }
    }
    CHECK(events[1].has_session_log());
    return steps;
  };
  using Steps = std::vector<std::int64_t>;
  CHECK(starts_of([](Curves& curves) { curves.add(201, {{"loss", 2.0F}}); }) == Steps{201});
  CHECK(starts_of([](Curves& curves) { curves.add(200, {{"loss", 0.0F}}); }) == Steps{201});
  // A test before the first iteration is of the one that the training goes on from.
  TestScores scores;
  scores.scores = {{"accuracy", 0.5F, 0.0F}};
  CHECK(starts_of([&](Curves& curves) { curves.add_tests(200, {scores}); }) == Steps{201});
}

TEST_CASE("Curves: a long training has few of its many points") {
  const TempDir folder;
  constexpr std::uint64_t kAdded = 4 * Curves::kPointsAll;
  {
    auto curves = Curves::create((folder / "c").string());
    REQUIRE(curves);
    for (std::uint64_t i = 1; i <= kAdded; ++i) (*curves)->add(i, {{"loss", 1.0F}});
  }
  const auto events = events_in(folder / "c");
  CHECK(events.size() > Curves::kPointsAll);
  CHECK(events.size() < kAdded);
}

TEST_CASE("Curves: each iteration once, nothing that is not finite, tests by net") {
  const TempDir folder;
  {
    auto curves = Curves::create((folder / "c").string());
    REQUIRE(curves);
    (*curves)->add(1, {{"loss", 2.0F}});
    (*curves)->add(1, {{"loss", 3.0F}});
    (*curves)->add(2, {{"loss", std::numeric_limits<float>::quiet_NaN()}});
    TestScores first, second;
    first.scores = {{"accuracy", 0.5F, 0.0F}};
    second.scores = {{"loss", 0.75F, 1.0F}};
    (*curves)->add_tests(2, {first, second});
  }
  const auto events = events_in(folder / "c");
  REQUIRE(events.size() == 3);
  CHECK(events[1].summary().value(0).simple_value() == 2.0F);
  REQUIRE(events[2].summary().value_size() == 2);
  CHECK(events[2].summary().value(0).tag() == "test/accuracy");
  CHECK(events[2].summary().value(1).tag() == "test1/loss");
}

TEST_CASE("Without a folder there are no curves; one that cannot be written is an error") {
  auto none = Curves::create("");
  REQUIRE(none);
  (*none)->add(1, {{"loss", 2.0F}});
  const TempDir folder;
  std::ofstream(folder / "file") << "x";
  const auto refused = Curves::create((folder / "file" / "c").string());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCannotWrite);
  CHECK(refused.error().message.find("TensorBoard") != std::string::npos);
}

TEST_CASE("A file that cannot be written any more is an error that names it") {
  const TempDir folder;
  std::filesystem::create_directory(folder / "c");
  auto file = EventFile::create(folder / "c");
  REQUIRE(file);
  // The limit of a process' files stands in for a disk that is full.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{.rlim_cur = 256, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  Result<void> written;
  for (int step = 0; step < 100 && written; ++step) {
    written = (*file)->add(step, 1.0, {{"train/loss", 1.0F}});
    if (written) written = (*file)->flush();
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::kCannotWrite);
  CHECK(written.error().message.find((*file)->path().string()) != std::string::npos);
}

}  // namespace
}  // namespace speedo
