// Mergers of shards that come to a master: which shard each gets, and what becomes of one that
// comes again.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

#include <speedo/base/platform.hpp>

#include "train/job/part_peers.hpp"

namespace speedo {
namespace {

constexpr std::size_t kParts = 3;

struct MasterShell {
  MasterWork::PartTerms terms{.desk = std::make_shared<PartDesk>(real_platform()),
                              .parts = kParts,
                              .welcome = {}};
  std::vector<std::pair<PeerId, WelcomeMessage>> welcomed;
  std::vector<std::pair<PeerId, RefusedMessage>> refused;
  std::vector<PeerId> ordered;
  std::vector<PartTold> told;
  std::vector<std::string> warned;
  PartPeers peers{
      {.welcome = [this](PeerId to,
                         WelcomeMessage message) { welcomed.emplace_back(to, std::move(message)); },
       .refuse = [this](PeerId to,
                        RefusedMessage message) { refused.emplace_back(to, std::move(message)); },
       .order = [this](PeerId to, PartOrderMessage) { ordered.push_back(to); },
       .notice = [this](PartTold each) { told.push_back(std::move(each)); },
       .warn = [this](std::string text) { warned.push_back(std::move(text)); }}};

  MasterShell() {
    terms.welcome.model_high = 1;
    terms.welcome.model_low = 2;
  }
  void greet(std::uint64_t peer, const std::string& device = kPartDevice) {
    HelloMessage hello;
    hello.protocol = kProtocolVersion;
    hello.name = "host/" + std::to_string(peer);
    hello.device = device;
    peers.greet(PeerId{peer}, hello, &terms);
  }
  void ready(std::uint64_t peer, std::uint64_t model_low = 2) {
    peers.take(PeerId{peer}, ReadyMessage{peer, 1, model_low}, terms);
  }
  void deliver() {
    const std::vector<PartTold> all = std::exchange(told, {});
    for (const PartTold& each : all) peers.send(each);
  }
  std::vector<PartAnswer> answers;
  std::shared_ptr<PartLink> seated() {
    auto offers = terms.desk->take_offers();
    REQUIRE(offers.size() == 1);
    offers[0].link->answer_to([this](PartAnswer answer) { answers.push_back(std::move(answer)); });
    return offers[0].link;
  }
};

}  // namespace

TEST_CASE("a merger gets the shard that it names, or one that nobody has", "[parts]") {
  MasterShell shell;
  shell.greet(1, "shard:2");
  shell.greet(2);
  shell.greet(3);
  REQUIRE(shell.welcomed.size() == 3);
  CHECK(shell.welcomed[0].second.part == 2);
  CHECK(shell.welcomed[1].second.part == 1);
  CHECK(shell.welcomed[2].second.part == 3);
  shell.greet(4);
  shell.greet(5, "shard:4");
  REQUIRE(shell.refused.size() == 2);
  CHECK(shell.warned[1] == "refused: " + shell.refused[1].second.reason);
  CHECK_FALSE(shell.peers.has(PeerId{4}));
  CHECK(shell.refused[1].second.reason.find("has 3 shards") != std::string::npos);
  CHECK(error_code_of(shell.refused[1].second.code) == ErrorCode::kMismatch);
}

TEST_CASE("a merger that names no shard comes again where each has one, as one may be dead",
          "[parts]") {
  MasterShell shell;
  for (std::uint64_t peer = 1; peer <= 4; ++peer) shell.greet(peer);
  REQUIRE(shell.refused.size() == 1);
  CHECK(error_code_of(shell.refused[0].second.code) == ErrorCode::kUnavailable);
  CHECK(shell.refused[0].second.reason.find("each of the 3 shards") != std::string::npos);
  CHECK(shell.peers.lose(PeerId{2}, "no beat"));
  shell.greet(4);
  CHECK(shell.welcomed.back().second.part == 2);
}

TEST_CASE("a merger of another model is refused, and forgotten", "[parts]") {
  MasterShell shell;
  shell.greet(1);
  shell.ready(1, 7);
  REQUIRE(shell.refused.size() == 1);
  CHECK_FALSE(shell.peers.has(PeerId{1}));
  CHECK(shell.terms.desk->take_offers().empty());
  shell.greet(2);
  CHECK(shell.welcomed.back().second.part == 1);
}

TEST_CASE("orders go to the merger that offered itself, and its going is told", "[parts]") {
  MasterShell shell;
  shell.greet(1);
  shell.ready(1);
  shell.ready(1);  // until it gets an order
  const auto link = shell.seated();
  link->tell(part_order::Copy{5});
  shell.deliver();
  CHECK(shell.ordered == std::vector{PeerId{1}});
  CHECK(shell.peers.lose(PeerId{1}, "reset"));
  REQUIRE(shell.answers.size() == 1);
  CHECK(std::get<part_answer::Lost>(shell.answers[0]).reason == "reset");
  CHECK_FALSE(shell.peers.lose(PeerId{1}, "reset"));
}

// Its connection broke, and only it has noticed.
TEST_CASE("a merger that comes again is lost first, and is not turned away", "[parts]") {
  MasterShell shell;
  shell.greet(1);
  shell.ready(1);
  const auto before = shell.seated();
  shell.greet(1);
  REQUIRE(shell.answers.size() == 1);
  CHECK(std::holds_alternative<part_answer::Lost>(shell.answers[0]));
  CHECK(shell.welcomed.back().second.part == 1);
  shell.ready(1);
  CHECK(shell.seated() != before);
  CHECK(shell.refused.empty());
}

// What it sent waited on the way, and arrives after its end.
TEST_CASE("a merger that is late does not get the part of its successor", "[parts]") {
  MasterShell shell;
  shell.greet(1, "shard:2");
  shell.greet(2, "shard:2");
  shell.ready(2);
  const auto successor = shell.seated();
  shell.ready(1);
  CHECK(shell.terms.desk->take_offers().empty());
  REQUIRE(shell.refused.size() == 1);
  CHECK(shell.refused[0].first == PeerId{1});
  CHECK(shell.refused[0].second.reason == kPartTaken);
  CHECK_FALSE(shell.peers.has(PeerId{1}));
  CHECK(shell.answers.empty());
}

// What is refused so ends the one that named its part, and has the other come again.
TEST_CASE("a merger whose part is taken by one that names it gets another", "[parts]") {
  const bool is_seated = GENERATE(true, false);
  CAPTURE(is_seated);
  MasterShell shell;
  shell.greet(1);
  if (is_seated) shell.ready(1);
  const auto first = is_seated ? shell.seated() : nullptr;
  shell.greet(2, "shard:1");
  shell.ready(2);
  const auto second = shell.seated();
  if (is_seated) {
    first->dismiss(kPartTaken);
    shell.deliver();
  } else {
    shell.ready(1);
  }
  REQUIRE(shell.refused.size() == 1);
  CHECK(shell.refused[0].first == PeerId{1});
  CHECK(shell.refused[0].second.reason == kPartTaken);
  CHECK(is_transient(error_code_of(shell.refused[0].second.code)));
  shell.greet(1);
  CHECK(shell.welcomed.back().first == PeerId{1});
  CHECK(shell.welcomed.back().second.part == 2);

  second->dismiss(kPartTaken);
  shell.deliver();
  REQUIRE(shell.refused.size() == 2);
  CHECK(error_code_of(shell.refused[1].second.code) == ErrorCode::kMismatch);
}

// The newer one may never be ready.
TEST_CASE("a merger has its part until its successor is ready", "[parts]") {
  MasterShell shell;
  shell.greet(1, "shard:2");
  shell.greet(2, "shard:2");
  shell.ready(1);
  const auto first = shell.seated();
  shell.ready(2);
  CHECK(shell.seated() != first);
  CHECK(shell.refused.empty());
}

}  // namespace speedo
