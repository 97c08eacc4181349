// Records that one writer after another puts under one master: whoever was replaced changes nothing
// more, though it does not know.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "store/record_codec.hpp"
#include "store/store_under_test.hpp"
#include "support/poll.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kTurnCount = 2 * kChunkElements + 100;

// The record lies on the last server.
struct Turns {
  explicit Turns(const std::string& kind)
      : store(kind), key(part_key(store->parts() - 1, "checkpoint")) {}

  std::shared_ptr<ParameterStore> writer_of(std::uint64_t term) const {
    auto writer = store.another();
    writer->fence(term);
    return writer;
  }
  // All but its end, until which the values are read.
  std::unique_ptr<RecordWriter> begin(ParameterStore& by, std::uint32_t first_slot,
                                      const std::vector<float>& values,
                                      std::uint64_t version) const {
    auto writer = by.write_in_turn(key, info_of(version, values.size()), first_slot);
    write_all(*writer, values);
    return writer;
  }
  Result<void> put(ParameterStore& by, std::uint32_t first_slot, const std::vector<float>& values,
                   std::uint64_t version) const {
    return begin(by, first_slot, values, version)->finish();
  }
  void require_stored(const std::vector<float>& expected, std::uint64_t version) const {
    std::vector<float> values(expected.size());
    const auto info = get(*store, key, kModel, values);
    require(info);
    CHECK(info->version == version);
    CHECK((values == expected));
  }
  std::size_t chunks_in(std::uint64_t term, std::uint32_t first_slot) const {
    const auto keys = store.map()->list(job_prefix("test"));
    require(keys);
    return static_cast<std::size_t>(std::ranges::count_if(*keys, [&](const std::string& each) {
      for (std::uint32_t slot = first_slot; slot < first_slot + kRecordSlots; ++slot) {
        const std::string names =
            ":t" + std::to_string(term) + ":s" + std::to_string(slot) + ":c";
        if (each.find(names) != std::string::npos) return true;
      }
      return false;
    }));
  }

  StoreUnderTest store;
  const std::string key;
};

}  // namespace

TEST_CASE("a record's earlier writer replaces nothing of a later one's", "[store][master]") {
  const std::string kind = GENERATE(from_range(store_kinds()));
  CAPTURE(kind);
  const Turns turns(kind);
  const auto earlier = turns.writer_of(5), later = turns.writer_of(5);
  const auto first = pattern(kTurnCount, 1), second = pattern(kTurnCount, 2);
  const auto overtaken = pattern(kTurnCount, 7);
  require(turns.put(*earlier, 3, first, 1));
  turns.require_stored(first, 1);
  const auto late = turns.begin(*earlier, 3, overtaken, 2);
  require(turns.put(*later, 6, second, 2));
  const auto refused = late->finish();
  REQUIRE(code_of(refused) == ErrorCode::kSuperseded);
  CHECK_THAT(refused.error().message,
             Catch::Contains("later writer") && Catch::Contains(turns.key));
  CHECK(code_of(earlier->erase_in_turn(turns.key, kTurnCount, 3)) == ErrorCode::kSuperseded);
  turns.require_stored(second, 2);
  CHECK(turns.chunks_in(5, 3) == 0);
  CHECK(turns.chunks_in(5, 6) == chunk_count(kTurnCount));

  // What it puts again goes to the next of its slots.
  require(turns.put(*later, 6, first, 3));
  turns.require_stored(first, 3);
  CHECK(turns.chunks_in(5, 6) == 2 * chunk_count(kTurnCount));
  require(turns.put(*later, 6, pattern(100, 1), 4));
  turns.require_stored(pattern(100, 1), 4);
  CHECK(turns.chunks_in(5, 6) == 3);
}

TEST_CASE("a new master's first writer of a record is later than all of the one before",
          "[store][master]") {
  const std::string kind = GENERATE(from_range(store_kinds()));
  CAPTURE(kind);
  const Turns turns(kind);
  const auto before = turns.writer_of(5), now = turns.writer_of(6);
  require(turns.put(*before, 300, pattern(kTurnCount, 1), 9));
  const auto values = pattern(kTurnCount, 2);
  require(turns.put(*now, 3, values, 2));
  CHECK(turns.chunks_in(5, 300) == 0);
  CHECK(code_of(turns.put(*before, 303, pattern(kTurnCount, 3), 10)) == ErrorCode::kSuperseded);
  turns.require_stored(values, 2);
  CHECK(turns.chunks_in(5, 303) == 0);
}

TEST_CASE("a record that a later writer has erased is not put by an earlier one",
          "[store][master]") {
  const std::string kind = GENERATE(from_range(store_kinds()));
  CAPTURE(kind);
  const Turns turns(kind);
  const auto earlier = turns.writer_of(5), later = turns.writer_of(5);
  require(turns.put(*earlier, 3, pattern(kTurnCount, 1), 1));
  require(later->erase_in_turn(turns.key, kTurnCount, 6));
  CHECK(code_of(turns.store->read(turns.key)) == ErrorCode::kNotFound);
  CHECK(turns.chunks_in(5, 3) == 0);
  CHECK(code_of(turns.put(*earlier, 3, pattern(kTurnCount, 1), 2)) == ErrorCode::kSuperseded);
  CHECK(code_of(turns.store->read(turns.key)) == ErrorCode::kNotFound);
  CHECK(turns.chunks_in(5, 3) == 0);
}

TEST_CASE("what puts in turn have left goes, but for what the visible record has",
          "[store][master]") {
  const std::string kind = GENERATE(from_range(store_kinds()));
  CAPTURE(kind);
  const Turns turns(kind);
  const auto writer = turns.writer_of(5);
  const auto values = pattern(kTurnCount, 1);
  require(turns.put(*writer, 3, values, 1));
  auto left = turns.begin(*writer, 6, values, 2);
  poll_until([&] { return left->is_sent(); });
  left.reset();
  REQUIRE(turns.chunks_in(5, 6) == chunk_count(kTurnCount));
  for (const std::uint32_t first_slot : {3U, 6U, 9U}) {
    turns.store->fence(5);
    turns.store->erase_unfinished(turns.key, kTurnCount, first_slot);
  }
  CHECK(turns.chunks_in(5, 6) == 0);
  turns.require_stored(values, 1);
}

TEST_CASE("a record that was not put in turn can be put and erased so", "[store][master]") {
  const std::uint64_t term = GENERATE(4, 5);
  const bool is_put = GENERATE(true, false);
  CAPTURE(term, is_put);
  const Turns turns("tcp");
  const auto before = turns.writer_of(term), now = turns.writer_of(5);
  require(put(*before, turns.key, info_of(1, kTurnCount), pattern(kTurnCount, 1)));
  REQUIRE(turns.chunks_in(term, 0) == chunk_count(kTurnCount));
  if (is_put) {
    require(turns.put(*now, 3, pattern(kTurnCount, 2), 2));
    turns.require_stored(pattern(kTurnCount, 2), 2);
  } else {
    require(now->erase_in_turn(turns.key, kTurnCount, 3));
    CHECK(code_of(turns.store->read(turns.key)) == ErrorCode::kNotFound);
  }
  CHECK(turns.chunks_in(term, 0) == 0);
}

// Until the later one puts its own again.
TEST_CASE("a store that has lost a record takes what any of its writers has", "[store][master]") {
  const Turns turns("memory");
  const auto earlier = turns.writer_of(5), later = turns.writer_of(5);
  require(turns.put(*later, 6, pattern(kTurnCount, 2), 2));
  const auto map = std::dynamic_pointer_cast<MemoryKeyValue>(turns.store.map());
  REQUIRE(map != nullptr);
  map->set_image({});
  const auto old = pattern(kTurnCount, 1);
  require(turns.put(*earlier, 3, old, 1));
  turns.require_stored(old, 1);
  const auto values = pattern(kTurnCount, 3);
  require(turns.put(*later, 6, values, 3));
  turns.require_stored(values, 3);
  CHECK(turns.chunks_in(5, 3) == 0);
  CHECK(code_of(turns.put(*earlier, 3, old, 1)) == ErrorCode::kSuperseded);
}

TEST_CASE("something else in the place of a record's writer is kCorrupt", "[store][master]") {
  const std::string kind = GENERATE(as<std::string>(), "memory", "tcp");
  const std::string bytes = GENERATE(as<std::string>(), "x", "00000000000000000005",
                                     "000000000000000000050000000000000000000x",
                                     "00000000000000000005000000000000000000033");
  CAPTURE(kind, bytes);
  const Turns turns(kind);
  const auto writer = turns.writer_of(5);
  require(turns.put(*writer, 3, pattern(100, 1), 1));
  auto set = std::make_shared<KvOperation>();
  set->kind = KvOperation::Kind::kSet;
  set->key = RecordKeys("test", turns.key).writer();
  set->head = bytes;
  require(execute(*turns.store.map(), set));
  CHECK(code_of(turns.put(*writer, 3, pattern(100, 2), 2)) == ErrorCode::kCorrupt);
  CHECK(code_of(writer->erase_in_turn(turns.key, 100, 3)) == ErrorCode::kCorrupt);
  const auto newer = turns.writer_of(6);
  require(newer->put_blob(part_key(turns.store->parts() - 1, "x"), "x"));
  CHECK(code_of(turns.put(*writer, 3, pattern(100, 2), 2)) == ErrorCode::kSuperseded);
  turns.require_stored(pattern(100, 1), 1);
}

}  // namespace speedo::test
