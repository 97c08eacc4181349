#pragma once

#include <optional>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/messages.hpp>

#include "train/parts/part_orders.hpp"

namespace speedo {

// Orders and answers as messages, in as many pieces as their lists take. A copy's values travel
// through the store; `Lost` does not travel.
std::vector<PartOrderMessage> to_messages(const PartOrder& order);
std::vector<PartAnswerMessage> to_messages(const PartAnswer& answer);

// Puts the pieces from one sender together, in the order in which they came. What is no order or
// answer is an error (kCorrupt): the sender is not one of ours.
class PartOrderReader {
 public:
  // None: it goes on.
  Result<std::optional<PartOrder>> take(const PartOrderMessage& message);

 private:
  std::vector<std::uint64_t> numbers_;
};

class PartAnswerReader {
 public:
  Result<std::optional<PartAnswer>> take(const PartAnswerMessage& message);

 private:
  std::vector<std::uint64_t> numbers_;
};

}  // namespace speedo
