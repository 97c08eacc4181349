// Every field of every message arrives as it was sent, whatever its bits.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"

#include <speedo/base/limits.hpp>

#include "actors/system.hpp"

namespace speedo {
namespace {

template <class Message>
Message round_trip(const Message& sent) {
  ActorConfig config;
  caf::actor_system system{config};
  std::vector<char> bytes;
  caf::binary_serializer sink{system, bytes};
  const caf::error sink_error = sink(const_cast<Message&>(sent));
  REQUIRE_FALSE(sink_error);
  REQUIRE(bytes.size() < kMessageBytesMax);
  caf::binary_deserializer source{system, bytes};
  Message received;
  const caf::error source_error = source(received);
  REQUIRE_FALSE(source_error);
  return received;
}

template <class Message>
void require_same(Message sent) {
  Message received = round_trip(sent);
  REQUIRE(received.fields() == sent.fields());
}

std::vector<float> every_class_of_float() {
  using Limits = std::numeric_limits<float>;
  return {0.0F,
          -0.0F,
          1.5F,
          -2.25F,
          Limits::min(),
          Limits::denorm_min(),
          -1.0e-42F,
          Limits::max(),
          Limits::lowest(),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::quiet_NaN(),
          -Limits::quiet_NaN(),
          std::bit_cast<float>(0x7f800001U),   // signalling NaN
          std::bit_cast<float>(0xffc12345U)};  // NaN with a payload
}

}  // namespace

TEST_CASE("a loss of any class of float arrives with its bits") {
  for (const float loss : every_class_of_float()) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(loss);
    CAPTURE(bits);
    const TrainedMessage received = round_trip(TrainedMessage{.worker = 3,
                                                              .run = 1,
                                                              .loss_bits = bits,
                                                              .base_version = 2,
                                                              .samples = 4,
                                                              .phases = {5, 6, 7, 8, 9},
                                                              .traffic = {10, 11}});
    REQUIRE(received.loss_bits == bits);
    REQUIRE(received.phases == PhaseTimes{5, 6, 7, 8, 9});
    REQUIRE(received.traffic == Traffic{10, 11});
  }
}

TEST_CASE("every message arrives as it was sent") {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  const std::string text(kTextMax, '\xff');
  require_same(HelloMessage{0xffffffffU, text, "cpu", kAll, 1});
  require_same(WelcomeMessage{kAll, text, text, kAll, 1, kAll, text, kAll, kAll});
  require_same(RefusedMessage{7, text});
  require_same(ReadyMessage{1, kAll, 0});
  require_same(TrainMessage{kAll, 2, 3, 4, kAll, 6, 7, kAll, 8, 0x7fc00000U, kNoRun});
  require_same(BeatMessage{kAll, kNoRun, 3});
  require_same(TrainedMessage{kAll, kAll, 0x7f800000U, kAll, kAll, {kAll, kAll, kAll, kAll, kAll},
                              {kAll, kAll}, kAll, kAll, text, {kAll, kAll}});
  require_same(LeaveMessage{kAll, 9, std::string("a\0b", 3)});
  require_same(StopMessage{text});
  const std::vector<std::uint64_t> numbers(kNumbersMax, kAll);
  require_same(PartOrderMessage{1, kAll, 2, kAll, 4, 5, 6, 0x7fc00000U, 8, 0, numbers});
  require_same(PartAnswerMessage{1, kAll, 3, 4, 5, text, 0, numbers});
}

}  // namespace speedo
