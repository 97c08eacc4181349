#include "train/parts/part_messages.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

enum PartOrderKind : std::uint32_t { kOpen = 1, kMerge, kExpect, kDecide, kCopy, kClose };
enum PartAnswerKind : std::uint32_t { kWritten = 1, kRejected, kFailed, kCopied };

constexpr std::uint32_t kMeanFlag = 1, kLastFlag = 2, kCommitFlag = 4;
constexpr std::uint32_t kAheadFlag = 1;
constexpr std::size_t kContributionNumbers = 4;
// A list that is longer is not one of ours: more than any model has chunks, or a job workers.
constexpr std::size_t kListMax = std::size_t{1} << 22U;

Error not_ours() { return {ErrorCode::kCorrupt, "a message about parts that makes no sense"}; }

// The message as often as its list needs it.
template <class Message>
std::vector<Message> in_pieces(const Message& head, const std::vector<std::uint64_t>& numbers) {
  std::vector<Message> pieces;
  std::size_t from = 0;
  do {
    const std::size_t count = std::min(kNumbersMax, numbers.size() - from);
    Message piece = head;
    const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(from);
    piece.numbers.assign(first, first + static_cast<std::ptrdiff_t>(count));
    from += count;
    piece.is_last = from == numbers.size() ? 1 : 0;
    pieces.push_back(std::move(piece));
  } while (from < numbers.size());
  return pieces;
}

// Appends a piece's list; whether it is whole now, and an error if it is too long.
template <class Message>
Result<bool> append(std::vector<std::uint64_t>& numbers, const Message& piece) {
  if (numbers.size() + piece.numbers.size() > kListMax) {
    numbers.clear();
    return not_ours();
  }
  numbers.insert(numbers.end(), piece.numbers.begin(), piece.numbers.end());
  return piece.is_last != 0;
}

PartOrderMessage job_message(const MergeJob& job, std::vector<std::uint64_t>& numbers) {
  PartOrderMessage message;
  message.iteration = job.iteration;
  message.stage = job.stage;
  message.lr_scale_bits = std::bit_cast<std::uint32_t>(job.lr_scale);
  message.flags = (job.mean ? kMeanFlag : 0) | (job.is_last ? kLastFlag : 0);
  for (const MergeJob::Contribution& each : job.contributions) {
    numbers.push_back(each.worker.value);
    numbers.push_back(each.run.value);
    numbers.push_back(std::bit_cast<std::uint32_t>(each.weight));
    numbers.push_back(std::bit_cast<std::uint32_t>(each.share));
  }
  return message;
}

Result<MergeJob> job_of(const PartOrderMessage& message,
                        const std::vector<std::uint64_t>& numbers) {
  if (numbers.size() % kContributionNumbers != 0 || numbers.empty()) return not_ours();
  MergeJob job{};
  job.iteration = message.iteration;
  job.stage = message.stage;
  job.lr_scale = std::bit_cast<float>(message.lr_scale_bits);
  job.mean = (message.flags & kMeanFlag) != 0;
  job.is_last = (message.flags & kLastFlag) != 0;
  for (std::size_t at = 0; at < numbers.size(); at += kContributionNumbers) {
    const auto number = [&](std::size_t i) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(numbers[at + i]));
    };
    job.contributions.push_back(
        {WorkerId{numbers[at]}, RunId{numbers[at + 1]}, number(2), number(3)});
  }
  return job;
}

struct OrderMessages {
  std::vector<std::uint64_t> numbers = {};

  PartOrderMessage operator()(const part_order::Open& order) {
    PartOrderMessage message;
    message.kind = kOpen;
    message.id = order.id;
    message.base = order.from.value;
    message.version = order.version.value;
    message.stage = order.stage;
    message.first_slot = order.first_slot;
    return message;
  }
  PartOrderMessage operator()(const part_order::Merge& order) {
    PartOrderMessage message = job_message(order.job, numbers);
    message.kind = kMerge;
    message.id = order.id;
    message.base = order.base.value;
    return message;
  }
  PartOrderMessage operator()(const part_order::Expect& order) {
    PartOrderMessage message = job_message(order.job, numbers);
    message.kind = kExpect;
    message.base = order.base.value;
    return message;
  }
  PartOrderMessage operator()(const part_order::Decide& order) {
    PartOrderMessage message;
    message.kind = kDecide;
    message.id = order.id;
    message.flags = order.commit ? kCommitFlag : 0;
    return message;
  }
  PartOrderMessage operator()(const part_order::Copy& order) {
    PartOrderMessage message;
    message.kind = kCopy;
    message.id = order.id;
    return message;
  }
  PartOrderMessage operator()(const part_order::Close& /*order*/) {
    PartOrderMessage message;
    message.kind = kClose;
    return message;
  }
};

struct AnswerMessages {
  std::vector<std::uint64_t> numbers = {};

  PartAnswerMessage operator()(const part_answer::Written& answer) {
    PartAnswerMessage message;
    message.kind = kWritten;
    message.id = answer.id;
    message.slot = answer.part.slot;
    message.flags = answer.begun_ahead ? kAheadFlag : 0;
    numbers = answer.part.checksums;
    return message;
  }
  PartAnswerMessage operator()(const part_answer::Rejected& answer) {
    PartAnswerMessage message;
    message.kind = kRejected;
    message.id = answer.id;
    // Those that are not finite first: `slot` counts them.
    message.slot = static_cast<std::uint32_t>(answer.not_finite.size());
    for (const WorkerId worker : answer.not_finite) numbers.push_back(worker.value);
    for (const WorkerId worker : answer.workers) {
      if (std::ranges::count(answer.not_finite, worker) == 0) numbers.push_back(worker.value);
    }
    return message;
  }
  PartAnswerMessage operator()(const part_answer::Failed& answer) {
    PartAnswerMessage message;
    message.kind = kFailed;
    message.id = answer.id;
    message.code = static_cast<std::uint32_t>(answer.error.code);
    message.text = clip_text(answer.error.message);
    return message;
  }
  PartAnswerMessage operator()(const part_answer::Copied& answer) {
    PartAnswerMessage message;
    message.kind = kCopied;
    message.id = answer.id;
    return message;
  }
  PartAnswerMessage operator()(const part_answer::Lost& /*answer*/) {
    SPEEDO_ASSERT(false);
    return {};
  }
};

Result<PartOrder> order_of(const PartOrderMessage& message,
                           const std::vector<std::uint64_t>& numbers) {
  switch (message.kind) {
    case kOpen:
      return PartOrder(part_order::Open{.id = message.id,
                                        .from = Version{message.base},
                                        .version = Version{message.version},
                                        .stage = message.stage,
                                        .first_slot = message.first_slot});
    case kMerge: {
      SPEEDO_ASSIGN(MergeJob job, job_of(message, numbers));
      return PartOrder(part_order::Merge{
          .id = message.id, .base = Version{message.base}, .job = std::move(job)});
    }
    case kExpect: {
      SPEEDO_ASSIGN(MergeJob job, job_of(message, numbers));
      return PartOrder(
          part_order::Expect{.base = Version{message.base}, .job = std::move(job)});
    }
    case kDecide:
      return PartOrder(part_order::Decide{message.id, (message.flags & kCommitFlag) != 0});
    case kCopy:
      return PartOrder(part_order::Copy{message.id});
    case kClose:
      return PartOrder(part_order::Close{});
    default:
      return not_ours();
  }
}

Result<PartAnswer> answer_of(const PartAnswerMessage& message,
                             std::vector<std::uint64_t> numbers) {
  switch (message.kind) {
    case kWritten:
      return PartAnswer(part_answer::Written{
          .id = message.id,
          .part = {.slot = message.slot, .checksums = std::move(numbers)},
          .begun_ahead = (message.flags & kAheadFlag) != 0});
    case kRejected: {
      part_answer::Rejected rejected{.id = message.id, .workers = {}};
      if (numbers.empty() || message.slot > numbers.size()) return not_ours();
      for (const std::uint64_t worker : numbers) rejected.workers.push_back(WorkerId{worker});
      rejected.not_finite.assign(rejected.workers.begin(), rejected.workers.begin() + message.slot);
      return PartAnswer(std::move(rejected));
    }
    case kFailed:
      return PartAnswer(
          part_answer::Failed{message.id, Error{error_code_of(message.code), message.text}});
    case kCopied:
      return PartAnswer(part_answer::Copied{.id = message.id, .weights = {}, .histories = {}});
    default:
      return not_ours();
  }
}

}  // namespace

std::vector<PartOrderMessage> to_messages(const PartOrder& order) {
  OrderMessages made;
  const PartOrderMessage head = std::visit(made, order);
  return in_pieces(head, made.numbers);
}

std::vector<PartAnswerMessage> to_messages(const PartAnswer& answer) {
  AnswerMessages made;
  const PartAnswerMessage head = std::visit(made, answer);
  return in_pieces(head, made.numbers);
}

Result<std::optional<PartOrder>> PartOrderReader::take(const PartOrderMessage& message) {
  SPEEDO_ASSIGN(const bool is_whole, append(numbers_, message));
  if (!is_whole) return std::optional<PartOrder>();
  SPEEDO_ASSIGN(PartOrder order, order_of(message, std::exchange(numbers_, {})));
  return std::optional<PartOrder>(std::move(order));
}

Result<std::optional<PartAnswer>> PartAnswerReader::take(const PartAnswerMessage& message) {
  SPEEDO_ASSIGN(const bool is_whole, append(numbers_, message));
  if (!is_whole) return std::optional<PartAnswer>();
  SPEEDO_ASSIGN(PartAnswer answer, answer_of(message, std::exchange(numbers_, {})));
  return std::optional<PartAnswer>(std::move(answer));
}

}  // namespace speedo
