#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// What a peer may say to CAF.
struct BaspRules {
  bool from_server = false;           // it greets first, as the side that publishes an actor
  std::string application;            // that its greeting must name
  std::vector<std::string> messages;  // types of messages that it may send, "speedo::HelloMessage"
};

// A filter for the binary actor system protocol (BASP, version 3) of CAF 0.17, one direction of one
// connection. CAF trusts its peers: a message may stop an actor, call CAF's own actors by their
// names or be routed to a third node, and a header can make its parser read what is not there.
//
// A header has 32 bytes, numbers with their highest byte first:
//   0 operation, 1 zero (2), 3 flags, 4 payload's length (4), 8 operation data (8),
//   16 source actor (8), 24 destination actor (8)
// Let through, each only whole and at most kMessageBytesMax long:
//   0 server's handshake, 1 client's handshake   at first; of one application, no interfaces
//   2 direct message    to a number, not a name; asynchronous; of one of the rules' types; from
//                       kActorsMax actors at most, since CAF keeps something of each
//   4 monitor, 5 down   from the node of the handshake to ours
//   6 heartbeat         a bare header
// Left out: a client's handshake that is sent again, as CAF does; CAF's question for its spawn
// server, which each side asks by itself; and its note that a message was not expected, which would
// end the actor that gets it.
// All else is an error.
// Thread safety: one thread.
class BaspFilter {
 public:
  explicit BaspFilter(BaspRules rules) : rules_(std::move(rules)) {}

  // Takes the next bytes, in pieces of any size; adds what may go on to `out`. Error: kCorrupt,
  // with what was wrong; the filter is of no use then.
  Result<void> pass(std::string_view bytes, std::string& out);

  // Of this side, as its own handshake says: kNodeBytes. Nothing that names it passes before.
  void set_own_node(std::string node) { own_node_ = std::move(node); }

  bool has_greeted() const { return !peer_node_.empty(); }
  std::uint64_t left_out() const { return left_out_; }

  static constexpr std::size_t kHeaderBytes = 32;
  static constexpr std::size_t kNodeBytes = 32;
  // Of a process with many workers: each is one, and each watches the master.
  static constexpr std::size_t kActorsMax = 16384;

 private:
  struct Header;
  enum class Fate { kPass, kLeaveOut };

  static Header parse(std::string_view bytes);
  Result<void> check_header(const Header& header) const;
  Result<Fate> judge(const Header& header, std::string_view payload);
  Result<Fate> judge_handshake(const Header& header, std::string_view payload);
  Result<Fate> judge_message(const Header& header, std::string_view payload);
  Result<Fate> judge_note(const Header& header, std::string_view payload) const;

  const BaspRules rules_;
  std::string peer_node_, own_node_;
  std::string held_;  // a message that is not whole yet
  std::set<std::uint64_t> sources_;
  std::uint64_t left_out_ = 0;
};

}  // namespace speedo
