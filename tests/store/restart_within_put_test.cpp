// A server that comes back without its last second while a master puts a record: what it shows
// again stays whole, or a master that dies now would leave nothing to its successor.

#include <functional>

#include <speedo/store/layout.hpp>

#include "store/store_under_test.hpp"
#include "store/striking_map.hpp"
#include "support/poll.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kPutElements = 2 * kChunkElements + 5;
constexpr std::uint64_t kPutTerm = 9;

std::uint64_t version_read(RecordStore& store) {
  std::vector<float> values(kPutElements, -1.0F);
  const auto info = get(store, weights_key(), kModel, values);
  require(info);
  CHECK((values == pattern(kPutElements, info->version)));
  return info->version;
}

void put_version(RecordStore& store, std::uint64_t version) {
  const auto values = pattern(kPutElements, version);
  require(put(store, weights_key(), test::info_of(version, kPutElements), values));
}

// Puts version 1 and, after `save`, as many as there are slots but one: the next put has the slot
// of version 1, which the server shows again after `go_back`.
void check_put(ParameterStore& store, ParameterStore& successors,
               const std::function<void()>& save, const std::function<void()>& go_back) {
  put_version(store, 1);
  save();
  std::uint64_t version = 1;
  while (version < kRecordSlots) put_version(store, ++version);
  const auto values = pattern(kPutElements, ++version);
  auto writer = store.write(weights_key(), test::info_of(version, kPutElements));
  go_back();
  write_all(*writer, values);
  poll_until([&] { return writer->is_sent(); });
  CHECK(version_read(successors) == 1);
  require(writer->finish());
  CHECK(version_read(successors) == version);
  put_version(store, ++version);
  CHECK(version_read(successors) == version);
}

bool erases(const KvOperation& operation) {
  return operation.kind == KvOperation::Kind::kErase && !operation.keys.empty();
}

}  // namespace

TEST_CASE("a put spares what a map shows again that has lost the last versions", "[store]") {
  const auto map = std::make_shared<MemoryKeyValue>();
  ChunkedStore store(map, "test"), successors(map, "test");
  store.fence(kPutTerm);
  MemoryImage saved;
  check_put(store, successors, [&] { saved = map->image(); }, [&] { map->set_image(saved); });
}

TEST_CASE("a put spares what a server shows again that has lost the last versions", "[redis]") {
  RedisServer server;
  const auto store = open(patient(server.tcp_uri()));
  const auto successors = open(patient(server.tcp_uri()));
  store->fence(kPutTerm);
  check_put(
      *store, *successors, [&] { command(server, {"SAVE"}); }, [&] { server.restart(); });
}

// Removing what a master before had, that is shown again.
TEST_CASE("what a put replaces stays where the server goes back before it is removed", "[store]") {
  const auto map = std::make_shared<MemoryKeyValue>();
  ChunkedStore earlier(map, "test"), successors(map, "test");
  earlier.fence(kPutTerm - 1);
  put_version(earlier, 1);
  const MemoryImage saved = map->image();
  const auto striking =
      std::make_shared<StrikingMap>(map, erases, [&] { map->set_image(saved); });
  ChunkedStore store(striking, "test");
  store.fence(kPutTerm);
  put_version(store, 2);
  CHECK(striking->has_struck());
  CHECK(version_read(successors) == 1);
}

TEST_CASE("what could not be removed as the server restarted, the next put removes", "[store]") {
  const auto map = std::make_shared<MemoryKeyValue>();
  ChunkedStore earlier(map, "test");
  earlier.fence(kPutTerm - 1);
  put_version(earlier, 1);
  const auto chunks_of_earlier = [&] {
    return map->list("speedo:{test}:weights:t" + std::to_string(kPutTerm - 1))->size();
  };
  const auto striking =
      std::make_shared<StrikingMap>(map, erases, [&] { map->set_image(map->image()); });
  ChunkedStore store(striking, "test");
  store.fence(kPutTerm);
  put_version(store, 2);
  CHECK(striking->has_struck());
  CHECK(chunks_of_earlier() > 0);
  put_version(store, 3);
  CHECK(chunks_of_earlier() == 0);
}

}  // namespace speedo::test
