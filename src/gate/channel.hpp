#pragma once

#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

#include "gate/gate_names.hpp"

namespace speedo {

// What a peer has shown of itself by its certificate; nothing of it without one.
struct ChannelPeer {
  std::string name;       // the certificate's common name
  bool is_master = false; // what it may be
  bool is_worker = false;
  std::string name_fault; // why it does not stand for the host that was called; empty: it does
};

// One side of a connection's protection, without the connection: bytes in, bytes out.
//
// After an error nothing more may be asked of it; what is in `out` tells the peer.
// Errors: kRefused if one side does not accept the other; kUnavailable for all else, such as bytes
// that were changed on their way.
// Thread safety: one thread.
class Channel {
 public:
  virtual ~Channel() = default;

  // Adds what this side says first to `out`.
  virtual Result<void> begin(std::string& out) = 0;
  // Takes what came from the network; adds what the peer meant to `plain`, answers to `out`.
  virtual Result<void> receive(std::string_view network, std::string& plain,
                               std::string& out) = 0;
  // Requires: is_ready().
  virtual Result<void> send(std::string_view plain, std::string& out) = 0;
  // Says that nothing more will be sent.
  virtual void end(std::string& out) = 0;
  // Both sides have proved what they have to; never true again after an error.
  virtual bool is_ready() const = 0;
  // Requires: is_ready().
  virtual ChannelPeer peer() const = 0;
};

// For GateMode::kOpen: passes everything on.
class OpenChannel final : public Channel {
 public:
  Result<void> begin(std::string&) override { return {}; }
  Result<void> receive(std::string_view network, std::string& plain, std::string&) override {
    plain += network;
    return {};
  }
  Result<void> send(std::string_view plain, std::string& out) override {
    out += plain;
    return {};
  }
  void end(std::string&) override {}
  bool is_ready() const override { return true; }
  ChannelPeer peer() const override { return {}; }
};

}  // namespace speedo
