#include "gate/basp_filter.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

namespace speedo {
namespace {

enum Operation : std::uint8_t {
  kServerHandshake = 0,
  kClientHandshake = 1,
  kDirectMessage = 2,
  kMonitor = 4,
  kDown = 5,
  kHeartbeat = 6,
};

constexpr std::uint64_t kBaspVersion = 3;
constexpr std::uint8_t kNamedReceiver = 1;
constexpr std::uint8_t kSelectsConnection = 2;  // of a handshake that is sent again
// The number of an asynchronous message of normal priority.
constexpr std::uint64_t kAsynchronous = std::uint64_t{1} << 60U;
// How CAF writes down that a node is known by process and host: an atom before those.
constexpr std::string_view kNodeKind("\x00\x00\x3e\x9a\xab\x9b\xac\x79", 8);
// No actors that the message was forwarded by, and a type of no number, which is named.
constexpr std::string_view kMessageStart("\x00\x00\x00", 3);
// What a content of several values begins its type with.
constexpr std::string_view kTypeStart = "@<>+";
constexpr std::string_view kSpawnServerQuestion = "@<>+@atom+@atom+@str";
// sec::unexpected_message, without more to say: its number, CAF's category, an empty content.
constexpr std::string_view kUnexpectedMessage(
    "\x01\x00\x00\x00\xfe\x3e\xe3\x9a\xb2\x00\x00\x03@<>", 15);
constexpr std::string_view kErrorType = "@<>+@error";
// Number and category of an error.
constexpr std::size_t kErrorHeadBytes = 9;
constexpr std::size_t kActorBytes = 8;

std::uint64_t basp_number(std::string_view bytes, std::size_t place, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i) {
    number = number << 8U | static_cast<unsigned char>(bytes[place + i]);
  }
  return number;
}

Error basp_error(std::string what) { return {ErrorCode::kCorrupt, std::move(what)}; }

// Takes a text with its length, one byte, before it; none is longer here.
std::optional<std::string_view> take_text(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  const std::size_t size = static_cast<unsigned char>(bytes[0]);
  if (size > 127 || bytes.size() < 1 + size) return std::nullopt;
  const std::string_view text = bytes.substr(1, size);
  bytes.remove_prefix(1 + size);
  return text;
}

// As the content of an error: nothing, or one text.
bool is_error_content(std::string_view bytes) {
  if (!bytes.starts_with(std::string_view("\0\0", 2))) return false;
  bytes.remove_prefix(2);
  const auto type = take_text(bytes);
  if (!type) return false;
  if (*type == "@<>") return bytes.empty();
  if (*type != "@<>+@str") return false;
  std::size_t size = 0;
  for (unsigned shift = 0; shift < 21 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    size |= static_cast<std::size_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return bytes.size() == size;
  }
  return false;
}

bool is_node(std::string_view bytes) {
  return bytes.size() == BaspFilter::kNodeBytes && bytes.starts_with(kNodeKind);
}

}  // namespace

struct BaspFilter::Header {
  std::uint8_t operation = 0, flags = 0;
  std::uint64_t padding = 0, payload_bytes = 0, data = 0, source = 0, target = 0;
};

BaspFilter::Header BaspFilter::parse(std::string_view bytes) {
  return {.operation = static_cast<std::uint8_t>(bytes[0]),
          .flags = static_cast<std::uint8_t>(bytes[3]),
          .padding = basp_number(bytes, 1, 2),
          .payload_bytes = basp_number(bytes, 4, 4),
          .data = basp_number(bytes, 8, 8),
          .source = basp_number(bytes, 16, 8),
          .target = basp_number(bytes, 24, 8)};
}

// What can be said before there is a payload, and must be before there is room for one.
Result<void> BaspFilter::check_header(const Header& header) const {
  const std::uint8_t greeting = rules_.from_server ? kServerHandshake : kClientHandshake;
  if (header.padding != 0) return basp_error("a header that is none of CAF's");
  if (header.payload_bytes > kMessageBytesMax) {
    return basp_error(fmt::format("a message of {} bytes, more than {}", header.payload_bytes,
                                  kMessageBytesMax));
  }
  if (!has_greeted() && header.operation != greeting) return basp_error("no handshake at first");
  if (has_greeted() && rules_.from_server && header.operation == greeting) {
    return basp_error("a second handshake");
  }
  const bool known = header.operation == greeting || header.operation == kDirectMessage ||
                     header.operation == kMonitor || header.operation == kDown ||
                     header.operation == kHeartbeat;
  if (!known) return basp_error(fmt::format("operation {} of CAF's", header.operation));
  if ((header.operation == kHeartbeat) != (header.payload_bytes == 0)) {
    return basp_error("a heartbeat with a payload, or another message without");
  }
  const bool may_name = header.operation == kDirectMessage && header.flags == kNamedReceiver;
  const bool may_select =
      header.operation == kClientHandshake && header.flags == kSelectsConnection && has_greeted();
  if (header.flags != 0 && !may_name && !may_select) {
    return basp_error("flags that are not used here");
  }
  return {};
}

Result<BaspFilter::Fate> BaspFilter::judge_handshake(const Header& header,
                                                     std::string_view payload) {
  if (payload.size() < kNodeBytes || !is_node(payload.substr(0, kNodeBytes))) {
    return basp_error("a handshake without a node");
  }
  if (!rules_.from_server) {
    if (payload.size() != kNodeBytes) return basp_error("a handshake that is too long");
    if (header.data != 0 || header.source != 0 || header.target != 0) {
      return basp_error("a handshake with more than it has");
    }
  } else {
    // One application, the number of the published actor, no interfaces.
    std::string wanted = "\x01";
    wanted += static_cast<char>(rules_.application.size());
    wanted += rules_.application;
    std::string_view rest = payload.substr(kNodeBytes);
    if (header.data != kBaspVersion) return basp_error("a handshake of another version of CAF");
    if (!rest.starts_with(wanted)) return basp_error("a handshake of another application");
    rest.remove_prefix(wanted.size());
    if (rest.size() != kActorBytes + 1 || rest.back() != '\0') {
      return basp_error("a handshake with interfaces");
    }
  }
  const std::string_view node = payload.substr(0, kNodeBytes);
  if (has_greeted()) {
    if (node == peer_node_) return Fate::kLeaveOut;
    return basp_error("a second handshake, of another node");
  }
  peer_node_ = node;
  return Fate::kPass;
}

Result<BaspFilter::Fate> BaspFilter::judge_message(const Header& header,
                                                   std::string_view payload) {
  if (header.data != kAsynchronous) return basp_error("a request, or an answer to one");
  if (header.target == 0) return basp_error("a message to no actor");
  if (!payload.starts_with(kMessageStart)) return basp_error("a message that was forwarded");
  payload.remove_prefix(kMessageStart.size());
  const auto type = take_text(payload);
  if (!type) return basp_error("a message without a type");
  if (header.flags == kNamedReceiver) {
    if (*type == kSpawnServerQuestion) return Fate::kLeaveOut;
    return basp_error(fmt::format("a message to an actor of CAF's own"));
  }
  if (*type == kErrorType && payload == kUnexpectedMessage) return Fate::kLeaveOut;
  const bool allowed =
      type->starts_with(kTypeStart) &&
      std::find(rules_.messages.begin(), rules_.messages.end(), type->substr(kTypeStart.size())) !=
          rules_.messages.end();
  if (allowed) {
    sources_.insert(header.source);
    if (sources_.size() <= kActorsMax) return Fate::kPass;
    return basp_error(fmt::format("messages from more than {} actors", kActorsMax));
  }
  const bool printable = std::all_of(type->begin(), type->end(),
                                     [](char c) { return c > ' ' && c < 0x7F; });
  return basp_error(fmt::format("a message of type '{}'", printable ? *type : "?"));
}

// Source and destination node, and with an end its reason.
Result<BaspFilter::Fate> BaspFilter::judge_note(const Header& header,
                                                std::string_view payload) const {
  const bool of_peer = payload.size() >= 2 * kNodeBytes &&
                       payload.substr(0, kNodeBytes) == peer_node_ && is_node(own_node_) &&
                       payload.substr(kNodeBytes, kNodeBytes) == own_node_;
  if (!of_peer) return basp_error("a note in the name of another node, or to another");
  payload.remove_prefix(2 * kNodeBytes);
  const bool is_end = header.operation == kDown;
  // Else CAF closes the connection, without a word.
  if (header.data != 0 || (is_end && (header.source == 0 || header.target != 0))) {
    return basp_error("a note that is none of CAF's");
  }
  if (!is_end) {
    if (!payload.empty()) return basp_error("a note that is too long");
    return Fate::kPass;
  }
  if (payload.size() < kErrorHeadBytes || !is_error_content(payload.substr(kErrorHeadBytes))) {
    return basp_error("an actor's end for a reason that is none");
  }
  return Fate::kPass;
}

Result<BaspFilter::Fate> BaspFilter::judge(const Header& header, std::string_view payload) {
  switch (header.operation) {
    case kDirectMessage:
      return judge_message(header, payload);
    case kMonitor:
    case kDown:
      return judge_note(header, payload);
    case kHeartbeat:
      if (header.data == 0 && header.source == 0 && header.target == 0) return Fate::kPass;
      return basp_error("a heartbeat with more than it has");
    default:
      return judge_handshake(header, payload);
  }
}

Result<void> BaspFilter::pass(std::string_view bytes, std::string& out) {
  while (true) {
    if (held_.size() < kHeaderBytes) {
      const std::size_t taken = std::min(kHeaderBytes - held_.size(), bytes.size());
      held_ += bytes.substr(0, taken);
      bytes.remove_prefix(taken);
      if (held_.size() < kHeaderBytes) return {};
    }
    const Header header = parse(held_);
    SPEEDO_TRY(check_header(header));
    const std::size_t whole = kHeaderBytes + static_cast<std::size_t>(header.payload_bytes);
    const std::size_t taken = std::min(whole - held_.size(), bytes.size());
    held_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (held_.size() < whole) return {};
    SPEEDO_ASSIGN(const Fate fate, judge(header, std::string_view(held_).substr(kHeaderBytes)));
    if (fate == Fate::kPass) {
      out += held_;
    } else {
      left_out_ += 1;
    }
    held_.clear();
  }
}

}  // namespace speedo
