// The filter for CAF's protocol: what passes does so in pieces of any size alike.
#include <string>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "gate/basp_filter.hpp"
#include "gate/basp_bytes.hpp"

namespace speedo::fuzz {
namespace {

struct Passed {
  bool is_cut = false;
  std::string out;
  bool operator==(const Passed&) const = default;
};

Passed pass(bool from_server, const std::string& bytes, std::size_t piece) {
  BaspFilter filter({.from_server = from_server,
                     .application = test::kCafApplication,
                     .messages = {"speedo::HelloMessage", "speedo::BeatMessage"}});
  filter.set_own_node(test::basp_node('m'));
  Passed passed;
  for (std::size_t at = 0; at < bytes.size() && !passed.is_cut; at += piece) {
    passed.is_cut = !filter.pass(std::string_view(bytes).substr(at, piece), passed.out);
  }
  return passed;
}

SPEEDO_FUZZ_TARGET(basp)(Bytes bytes) {
  Input input(bytes);
  const unsigned flags = input.byte();
  const std::size_t piece = 1 + input.byte();
  std::string text = input.text();
  // Behind a handshake that is right, else none of what follows it would ever be seen.
  if ((flags & 2U) != 0) text = test::client_handshake('w') + text;
  const bool from_server = (flags & 1U) != 0;
  const Passed whole = pass(from_server, text, text.size() + 1);
  SPEEDO_ASSERT(whole == pass(from_server, text, piece));
  SPEEDO_ASSERT(whole.out.size() <= text.size());
}

}  // namespace
}  // namespace speedo::fuzz
