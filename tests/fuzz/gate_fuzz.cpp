// One connection of a gate, as the side that listens or calls, open or under a token: greeting,
// preamble, handshake, then CAF's protocol through the filter.
#include <memory>
#include <string>

#include <speedo/base/assert.hpp>

#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"
#include "gate/gate_link.hpp"

#include <sys/stat.h>

namespace speedo::fuzz {
namespace {

constexpr std::uint32_t kSpoken = 8;
using Credentials = std::shared_ptr<const GateCredentials>;

const Credentials& token_credentials() {
  static const Credentials made = [] {
    const MemoryFile token(std::string(43, 'a') + "\n");
    SPEEDO_ASSERT(::fchmod(token.descriptor(), 0600) == 0);
    const GateFiles files{.token = token.path(), .certificates = {}};
    return GateCredentials::load(files, GateRole::kWorker).value();
  }();
  return made;
}

GateLink link_of(const Credentials& credentials, bool listens, Instant now) {
  const auto rules = [listens](const AdmittedPeer&) {
    return BaspRules{.from_server = !listens,
                     .application = "speedo/8",
                     .messages = {"speedo::HelloMessage"}};
  };
  if (!listens) {
    return GateLink(Admission::call(credentials, {kSpoken, GateRole::kWorker, "host"}).value(), "",
                    rules, now);
  }
  std::string greeting;
  auto admission = Admission::listen(credentials, kSpoken, greeting).value();
  return GateLink(std::move(admission), greeting, rules, now);
}

bool goes_on(const GateLink& link) {
  return link.state() == GateLink::State::kAdmission || link.state() == GateLink::State::kOpen;
}

// What a side of ours with the token says first, for a listener to hear: a random nonce is in it.
void open_by_preamble(GateLink& listener, Instant now) {
  GateLink caller = link_of(token_credentials(), false, now);
  caller.from_network(listener.to_network(), now);
  listener.from_network(caller.to_network().substr(0, kPreambleBytes), now);
}

SPEEDO_FUZZ_TARGET(gate)(Bytes bytes) {
  Input input(bytes);
  const unsigned flags = input.byte();
  const bool listens = (flags & 1U) != 0, has_token = (flags & 2U) != 0;
  const std::size_t piece = 1 + input.byte();
  Instant now{std::chrono::hours{1}};
  GateLink link = link_of(has_token ? token_credentials() : GateCredentials::none(), listens, now);
  if (listens && has_token && (flags & 4U) != 0) open_by_preamble(link, now);
  while (!input.left().empty() && goes_on(link)) {
    link.from_network(text_of(input.take(piece)), now);
    link.to_local().clear();
    link.from_local("said by this side's CAF", now);
    link.to_network().clear();
    now += std::chrono::milliseconds{1};
  }
  if ((flags & 8U) != 0) link.local_ended(now);
  if (goes_on(link) && (flags & 16U) == 0) link.network_ended();
  link.pass_time(now + std::chrono::hours{1});
}

}  // namespace
}  // namespace speedo::fuzz
