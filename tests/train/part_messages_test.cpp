// What the master tells the mergers of parts, and what they answer, as it travels.

#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"

#include <speedo/base/random.hpp>

#include "train/parts/part_messages.hpp"
#include "train/parts/part_record.hpp"

namespace speedo {
namespace {

MergeJob some_job(std::size_t contributions) {
  MergeJob job{};
  job.iteration = std::uint64_t{1} << 40U;
  job.mean = true;
  job.is_last = contributions % 2 == 0;
  job.stage = 3;
  job.lr_scale = 0.3F;
  for (std::size_t i = 0; i < contributions; ++i) {
    const auto number = static_cast<float>(i);
    job.contributions.push_back({WorkerId{i}, RunId{i << 33U}, 0.1F * number, 0.3F * number});
  }
  return job;
}

template <class Reader, class Value>
Value through(const Value& value, std::size_t pieces_expected) {
  const auto pieces = to_messages(value);
  REQUIRE(pieces.size() == pieces_expected);
  Reader reader;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    REQUIRE(pieces[i].numbers.size() <= kNumbersMax);
    auto taken = reader.take(pieces[i]);
    REQUIRE(taken.has_value());
    REQUIRE(taken->has_value() == (i + 1 == pieces.size()));
    if (taken->has_value()) return std::move(**taken);
  }
  return value;
}

PartOrder through(const PartOrder& order, std::size_t pieces = 1) {
  return through<PartOrderReader>(order, pieces);
}
PartAnswer through(const PartAnswer& answer, std::size_t pieces = 1) {
  return through<PartAnswerReader>(answer, pieces);
}

}  // namespace

TEST_CASE("orders to mergers of parts arrive as they were sent, in pieces too") {
  const std::vector<PartOrder> orders = {
      part_order::Open{1, Version{7}, Version{8}, 2, 300},
      part_order::Merge{2, Version{9}, some_job(1)},
      part_order::Expect{Version{8}, some_job(2)},
      part_order::Decide{3, true},
      part_order::Decide{4, false},
      part_order::Copy{5},
      part_order::Close{}};
  for (const PartOrder& order : orders) CHECK((through(order) == order));
  // Four numbers a contribution.
  const std::size_t full = kNumbersMax / 4;
  CHECK((through(part_order::Expect{Version{9}, some_job(full)}, 1) ==
         PartOrder(part_order::Expect{Version{9}, some_job(full)})));
  const PartOrder long_one = part_order::Merge{6, Version{10}, some_job(3 * full + 1)};
  CHECK((through(long_one, 4) == long_one));
}

TEST_CASE("answers of mergers of parts arrive as they were sent, in pieces too") {
  part_answer::Written written{1, {12, {}}, true};
  CHECK(std::get<part_answer::Written>(through(PartAnswer(written))) == written);
  written.part.checksums.assign(2 * kNumbersMax, ~std::uint64_t{0});
  CHECK(std::get<part_answer::Written>(through(PartAnswer(written), 2)) == written);
  const part_answer::Rejected rejected{2, {WorkerId{1}, WorkerId{3}, WorkerId{7}}, {WorkerId{1}}};
  CHECK(std::get<part_answer::Rejected>(through(PartAnswer(rejected))) == rejected);
  PartAnswerMessage too_many = to_messages(PartAnswer(rejected)).front();
  too_many.slot = 4;
  CHECK_FALSE(PartAnswerReader().take(too_many).has_value());
  const auto failed = std::get<part_answer::Failed>(
      through(PartAnswer(part_answer::Failed{3, {ErrorCode::kFull, "no\nroom"}})));
  CHECK(failed.id == 3);
  CHECK(failed.error.code == ErrorCode::kFull);
  CHECK(failed.error.message == "no room");
  CHECK(std::get<part_answer::Copied>(through(PartAnswer(part_answer::Copied{4, {}, {}}))).id == 4);
}

TEST_CASE("messages about parts that nobody of ours sends are refused, and harm nothing") {
  const std::uint64_t rounds = 2000;
  Random random(1);
  PartOrderReader orders;
  PartAnswerReader answers;
  int refused = 0, taken = 0;
  const auto count = [&](bool is_ok) { (is_ok ? taken : refused) += 1; };
  for (std::uint64_t round = 0; round < rounds; ++round) {
    PartOrderMessage order;
    order.kind = static_cast<std::uint32_t>(random.below(9));
    order.flags = static_cast<std::uint32_t>(random.below(16));
    order.numbers.resize(random.below(5), random.below(100));
    order.is_last = static_cast<std::uint32_t>(random.below(2));
    count(orders.take(order).has_value());
    PartAnswerMessage answer;
    answer.kind = static_cast<std::uint32_t>(random.below(9));
    answer.numbers = order.numbers;
    answer.is_last = order.is_last;
    count(answers.take(answer).has_value());
  }
  CHECK(refused > 100);
  CHECK(taken > 100);
  // A list without an end is given up, and the next one is read.
  PartAnswerMessage endless = to_messages(PartAnswer(part_answer::Written{1, {}, false})).front();
  endless.is_last = 0;
  endless.numbers.assign(kNumbersMax, 1);
  bool is_refused = false;
  for (int i = 0; i < 20000 && !is_refused; ++i) is_refused = !answers.take(endless).has_value();
  CHECK(is_refused);
  endless.is_last = 1;
  const auto next = answers.take(endless);
  REQUIRE(next.has_value());
  CHECK(std::get<part_answer::Written>(**next).part.checksums.size() == kNumbersMax);
}

TEST_CASE("what mergers elsewhere read of a job says all that its layout is") {
  PartRecord record;
  record.publish_interval = 17;
  record.has_copies = false;
  ParameterSlot slot;
  slot.layer = "conv";
  slot.index = 1;
  slot.name = "w";
  slot.shape = Shape({3, 5, 7});
  slot.lr_mult = 2.0F;
  slot.decay_mult = 0.0F;
  record.layout.add(slot);
  slot.layer = "bn";
  slot.is_statistic = true;
  record.layout.add(slot);
  const std::string bytes = encode(record);
  const auto read = decode_parts(bytes);
  REQUIRE(read.has_value());
  CHECK(read->publish_interval == 17);
  CHECK_FALSE(read->has_copies);
  CHECK(read->layout.digest() == record.layout.digest());
  REQUIRE(read->layout.slots().size() == 2);
  CHECK(read->layout.slots()[0].lr_mult == 2.0F);
  CHECK(read->layout.slots()[0].decay_mult == 0.0F);
  CHECK(read->layout.slots()[1].is_statistic);
  CHECK(read->layout.slots()[1].offset == record.layout.slots()[1].offset);
  CHECK(decode_parts(bytes.substr(0, bytes.size() - 1)).error().code == ErrorCode::kCorrupt);
  CHECK(decode_parts("not that").error().code == ErrorCode::kCorrupt);
}

}  // namespace speedo
