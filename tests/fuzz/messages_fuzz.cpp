// Messages of other processes, through CAF's deserializer, and what is made of them.
#include <string>
#include <vector>

#include "actors/wire.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "train/parts/part_messages.hpp"
#include "train/status_messages.hpp"

namespace speedo::fuzz {
namespace {

// Of no system: no field of ours is an actor.
constexpr caf::execution_unit* kNoContext = nullptr;

template <WireMessage Message>
std::optional<Message> received(const std::vector<char>& bytes) {
  caf::binary_deserializer source{kNoContext, bytes};
  Message message;
  if (source(message)) return std::nullopt;
  message = clipped(std::move(message));
  std::vector<char> written;
  caf::binary_serializer sink{kNoContext, written};
  SPEEDO_ASSERT(!sink(message));
  return message;
}

void read_status(const std::vector<char>& job, const std::vector<char>& worker) {
  StatusAssembly assembly;
  if (auto message = received<JobStatusMessage>(job)) {
    message->rows %= 3;
    assembly.begin(*message);
  }
  if (const auto message = received<WorkerStatusMessage>(worker)) {
    for (int i = 0; i < 3; ++i) assembly.add(*message);
  }
  const auto status = assembly.take();
  if (status) SPEEDO_ASSERT(to_messages(*status).workers.size() == status->workers.size());
}

std::vector<char> chars_of(Bytes bytes) {
  const char* const begin = reinterpret_cast<const char*>(bytes.data());
  return {begin, begin + bytes.size()};
}

// What is taken can be said again.
template <class Reader, class Said>
void say_again(const Said& said) {
  Reader reader;
  const auto messages = to_messages(said);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto again = reader.take(messages[i]);
    SPEEDO_ASSERT(again && again->has_value() == (i + 1 == messages.size()));
  }
}

template <class Message, class Reader>
void read_pieces(Input input) {
  Reader reader;
  while (!input.left().empty()) {
    const auto message = received<Message>(chars_of(input.piece()));
    if (!message) return;
    const auto said = reader.take(*message);
    if (!said) return;
    if (*said) say_again<Reader>(**said);
  }
}

SPEEDO_FUZZ_TARGET(messages)(Bytes bytes) {
  if (bytes.size() > kMessageBytesMax) return;
  Input input(bytes);
  const unsigned which = input.byte() % 13U;
  if (which == 11) return read_pieces<PartOrderMessage, PartOrderReader>(input);
  if (which == 12) return read_pieces<PartAnswerMessage, PartAnswerReader>(input);
  const std::vector<char> first = which == 10 ? chars_of(input.piece()) : chars_of(input.left());
  if (which == 0) received<HelloMessage>(first);
  if (which == 1) received<WelcomeMessage>(first);
  if (which == 2) received<RefusedMessage>(first);
  if (which == 3) received<ReadyMessage>(first);
  if (which == 4) received<TrainMessage>(first);
  if (which == 5) received<TrainedMessage>(first);
  if (which == 6) received<LeaveMessage>(first);
  if (which == 7) received<StopMessage>(first);
  if (which == 8) received<BeatMessage>(first);
  if (which == 9) received<StatusRequestMessage>(first);
  if (which == 10) read_status(first, chars_of(input.left()));
}

}  // namespace
}  // namespace speedo::fuzz
