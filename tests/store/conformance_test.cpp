// What every ParameterStore promises, asked of each kind of store.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "store/store_under_test.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kThreeChunks = 2 * kChunkElements + 17;

#define FOR_EACH_STORE()                                                                     \
  const std::string kind = GENERATE(from_range(store_kinds().begin(), store_kinds().end())); \
  CAPTURE(kind);                                                                             \
  StoreUnderTest store(kind)

std::vector<float> read_all(RecordStore& store, std::string_view key, std::size_t count) {
  std::vector<float> values(count, -1.0F);
  require(get(store, key, kModel, values));
  return values;
}

}  // namespace

TEST_CASE("a record comes back as it was put", "[store]") {
  FOR_EACH_STORE();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kChunkElements - 1,
                                  kChunkElements, kChunkElements + 1, kThreeChunks}) {
    CAPTURE(count);
    const auto values = pattern(count, 7);
    RecordInfo info = info_of(7, count);
    info.base_version = 6;
    info.worker = 3;
    require(put(*store, "weights", info, values));
    std::vector<float> target(count);
    const auto found = get(*store, "weights", kModel, target);
    require(found);
    REQUIRE(target == values);
    REQUIRE(found->model == kModel);
    REQUIRE(found->version == 7);
    REQUIRE(found->base_version == 6);
    REQUIRE(found->worker == 3);
    REQUIRE(found->element_count == count);
  }
}

TEST_CASE("every bit of a float survives", "[store]") {
  FOR_EACH_STORE();
  const std::vector<std::uint32_t> bits = {0x7f800000, 0xff800000, 0x7fc12345,
                                           0x00000001, 0x80000000, 0x7f7fffff};
  std::vector<float> values(bits.size());
  std::memcpy(values.data(), bits.data(), bits.size() * sizeof(float));
  require(put(*store, "odd", info_of(1, values.size()), values));
  std::vector<float> target(values.size());
  require(get(*store, "odd", kModel, target));
  REQUIRE(std::memcmp(target.data(), bits.data(), bits.size() * sizeof(float)) == 0);
}

TEST_CASE("the newest record is found", "[store]") {
  FOR_EACH_STORE();
  for (std::uint64_t version = 0; version < 8; ++version) {
    require(put(*store, "weights", info_of(version, 100), pattern(100, version)));
    REQUIRE(read_all(*store, "weights", 100) == pattern(100, version));
  }
}

TEST_CASE("what is not there is kNotFound", "[store]") {
  FOR_EACH_STORE();
  std::vector<float> target(10);
  REQUIRE(code_of(store->read("weights")) == ErrorCode::kNotFound);
  REQUIRE(code_of(get(*store, "weights", kModel, target)) == ErrorCode::kNotFound);
  REQUIRE(code_of(store->get_blob("job")) == ErrorCode::kNotFound);
}

TEST_CASE("another model or size is kMismatch", "[store]") {
  FOR_EACH_STORE();
  require(put(*store, "weights", info_of(1, 10), pattern(10, 1)));
  std::vector<float> target(10), longer(11);
  REQUIRE(code_of(get(*store, "weights", Digest{9, 9}, target)) == ErrorCode::kMismatch);
  REQUIRE(code_of(get(*store, "weights", kModel, longer)) == ErrorCode::kMismatch);
}

TEST_CASE("nothing is visible before finish", "[store]") {
  FOR_EACH_STORE();
  const auto old_values = pattern(kThreeChunks, 1), new_values = pattern(kThreeChunks, 2);
  require(put(*store, "weights", info_of(1, kThreeChunks), old_values));
  const std::span<const float> all = new_values;
  {
    auto writer = store->write("weights", info_of(2, kThreeChunks));
    writer->write(2, all.subspan(2 * kChunkElements));
    writer->write(0, all.first(kChunkElements));
    REQUIRE(read_all(*store, "weights", kThreeChunks) == old_values);
  }  // dropped: as if it never was
  REQUIRE(read_all(*store, "weights", kThreeChunks) == old_values);

  auto writer = store->write("weights", info_of(2, kThreeChunks));
  writer->write(1, all.subspan(kChunkElements, kChunkElements));
  writer->write(2, all.subspan(2 * kChunkElements));
  writer->write(0, all.first(kChunkElements));
  REQUIRE(read_all(*store, "weights", kThreeChunks) == old_values);
  require(writer->finish());
  REQUIRE(read_all(*store, "weights", kThreeChunks) == new_values);
}

TEST_CASE("a reader keeps its version until its slot is used again", "[store]") {
  FOR_EACH_STORE();
  require(put(*store, "weights", info_of(1, 50), pattern(50, 1)));
  auto reader = store->read("weights");
  auto late_reader = store->read("weights");
  require(reader);
  require(late_reader);
  require(put(*store, "weights", info_of(2, 50), pattern(50, 2)));
  require(put(*store, "weights", info_of(3, 50), pattern(50, 3)));
  std::vector<float> target(50);
  (*reader)->request(0, target);
  require((*reader)->wait(0));
  REQUIRE(target == pattern(50, 1));

  require(put(*store, "weights", info_of(4, 50), pattern(50, 4)));
  (*late_reader)->request(0, target);
  REQUIRE(code_of((*late_reader)->wait(0)) == ErrorCode::kNotFound);
}

TEST_CASE("an opened record that is erased is kNotFound", "[store]") {
  FOR_EACH_STORE();
  require(put(*store, contribution_key(1, 4), info_of(1, 50), pattern(50, 1)));
  auto reader = store->read(contribution_key(1, 4));
  require(reader);
  require(store->put_blob(contribution_key(1, 4), "text"));
  require(store->erase(contribution_key(1, 4)));
  std::vector<float> target(50);
  (*reader)->request(0, target);
  REQUIRE(code_of((*reader)->wait(0)) == ErrorCode::kNotFound);
  REQUIRE(code_of(store->read(contribution_key(1, 4))) == ErrorCode::kNotFound);
  REQUIRE(*store->get_blob(contribution_key(1, 4)) == "text");
  require(store->erase(contribution_key(1, 4)));
}

TEST_CASE("a reader may be dropped with requests under way", "[store]") {
  FOR_EACH_STORE();
  const auto values = pattern(kThreeChunks, 1);
  require(put(*store, "weights", info_of(1, kThreeChunks), values));
  for (int i = 0; i < 20; ++i) {
    std::vector<float> target(kThreeChunks);
    auto reader = store->read("weights");
    require(reader);
    (*reader)->request(1, std::span(target).subspan(kChunkElements, kChunkElements));
    (*reader)->request(0, std::span(target).first(kChunkElements));
  }
  REQUIRE(read_all(*store, "weights", kThreeChunks) == values);
}

TEST_CASE("blobs are whole values", "[store]") {
  FOR_EACH_STORE();
  std::string large(3'000'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 7) large[i] = static_cast<char>(i);
  for (const std::string& value : {std::string(), std::string("a\0b\r\n", 5), large}) {
    require(store->put_blob("job", value));
    const auto found = store->get_blob("job");
    require(found);
    REQUIRE((*found == value));
  }
  require(put(*store, "job", info_of(1, 10), pattern(10, 1)));
  require(store->erase_blob("job"));
  REQUIRE(code_of(store->get_blob("job")) == ErrorCode::kNotFound);
  require(store->erase_blob("job"));
  REQUIRE(read_all(*store, "job", 10) == pattern(10, 1));
}

TEST_CASE("clear removes the job", "[store]") {
  FOR_EACH_STORE();
  require(store->clear());
  for (int worker = 0; worker < 5; ++worker) {
    require(put(*store, contribution_key(1, static_cast<std::uint64_t>(worker)), info_of(1, 10),
                pattern(10, 1)));
  }
  require(store->put_blob("job", "text"));
  require(store->clear());
  REQUIRE(code_of(store->read(contribution_key(1, 3))) == ErrorCode::kNotFound);
  REQUIRE(code_of(store->get_blob("job")) == ErrorCode::kNotFound);
}

TEST_CASE("contributions of all masters' workers are cleared, and nothing else", "[store]") {
  FOR_EACH_STORE();
  require(store->clear_contributions());
  for (const std::uint64_t term : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{60}}) {
    require(put(*store, contribution_key(term, 3), info_of(1, kThreeChunks),
                pattern(kThreeChunks, 1)));
    require(put(*store, local_key(term, 3), info_of(1, 10), pattern(10, 1)));
  }
  require(put(*store, weights_key(), info_of(4, 10), pattern(10, 4)));
  require(put(*store, checkpoint_key(), info_of(4, 10), pattern(10, 4)));
  require(store->put_blob("job", "text"));
  require(store->clear_contributions());
  for (const std::uint64_t term : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{60}}) {
    REQUIRE(code_of(store->read(contribution_key(term, 3))) == ErrorCode::kNotFound);
    REQUIRE(code_of(store->read(local_key(term, 3))) == ErrorCode::kNotFound);
  }
  REQUIRE(store.map()->list("speedo:{test}:" + contribution_key_prefix())->empty());
  REQUIRE(store.map()->list("speedo:{test}:" + handout_key_prefix())->empty());
  REQUIRE(read_all(*store, weights_key(), 10) == pattern(10, 4));
  REQUIRE(read_all(*store, checkpoint_key(), 10) == pattern(10, 4));
  REQUIRE(*store->get_blob("job") == "text");
  require(put(*store, contribution_key(5, 3), info_of(2, 10), pattern(10, 2)));
  REQUIRE(read_all(*store, contribution_key(5, 3), 10) == pattern(10, 2));
}

// More keys than are erased at once, and one of another job.
TEST_CASE("clear removes thousands of keys", "[store]") {
  FOR_EACH_STORE();
  const std::shared_ptr<KeyValue> map = store.map();
  std::vector<KvPtr> sets;
  for (int i = 0; i < 2500; ++i) {
    sets.push_back(std::make_shared<KvOperation>());
    sets.back()->kind = KvOperation::Kind::kSet;
    sets.back()->key = (i == 0 ? "speedo:{test2}:" : "speedo:{test}:") + std::to_string(i);
    sets.back()->head = "x";
    map->submit(sets.back());
  }
  for (const KvPtr& set : sets) set->wait();
  REQUIRE(map->list("speedo:{test}:")->size() >= 2499);
  require(store->clear());
  REQUIRE(map->list("speedo:{test}:")->empty());
  REQUIRE(map->list("speedo:{test2}:")->size() == 1);
}

// A writer overwrites as fast as it can; readers must see whole versions, never a mix.
TEST_CASE("readers beside a writer see one whole version", "[store]") {
  FOR_EACH_STORE();
  constexpr std::size_t kCount = kChunkElements + 1000;
  constexpr std::uint64_t kVersions = 60;
  require(put(*store, "weights", info_of(0, kCount), std::vector<float>(kCount, 0.0F)));
  std::atomic<bool> done{false};
  std::atomic<int> mixed{0}, failed{0}, reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      std::vector<float> target(kCount);
      while (!done) {
        const auto info = get(*store, "weights", kModel, target);
        if (!info) {
          // Overtaken again and again is allowed; anything else is not.
          if (info.error().code != ErrorCode::kNotFound) ++failed;
          continue;
        }
        const auto expected = static_cast<float>(info->version);
        if (std::count(target.begin(), target.end(), expected) != std::ptrdiff_t{kCount}) ++mixed;
        ++reads;
      }
    });
  }
  // Until they have read something beside it; the end of its patience guards against hanging.
  constexpr std::uint64_t kPatience = 100000;
  bool written = true;
  std::uint64_t last = 0;
  while (written && last < kPatience && (last < kVersions || reads == 0)) {
    const std::vector<float> values(kCount, static_cast<float>(++last));
    written = put(*store, "weights", info_of(last, kCount), values).has_value();
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  REQUIRE(written);
  REQUIRE(mixed == 0);
  REQUIRE(failed == 0);
  REQUIRE(reads > 0);
  REQUIRE(read_all(*store, "weights", kCount) ==
          std::vector<float>(kCount, static_cast<float>(last)));
}

TEST_CASE("several threads put and get their own records", "[store]") {
  FOR_EACH_STORE();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      const auto values = pattern(kChunkElements + 5, worker);
      std::vector<float> target(values.size());
      for (std::uint64_t run = 0; run < 5; ++run) {
        const std::string key = contribution_key(1, worker);
        if (!put(*store, key, info_of(run, values.size()), values)) ++wrong;
        if (!get(*store, key, kModel, target) || target != values) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(wrong == 0);
}

TEST_CASE("16 M floats", "[store]") {
  const std::string kind = GENERATE(as<std::string>(), "memory", "tcp", "unix");
  CAPTURE(kind);
  const StoreUnderTest store(kind);
  const auto values = pattern(16'000'000, 5);
  require(put(*store, "weights", info_of(5, values.size()), values));
  REQUIRE((read_all(*store, "weights", values.size()) == values));
}

TEST_CASE("61 M floats", "[.][long]") {
  const std::string kind = GENERATE(as<std::string>(), "memory", "tcp", "unix");
  CAPTURE(kind);
  const StoreUnderTest store(kind);
  const auto values = pattern(60'965'224, 5);
  require(put(*store, "weights", info_of(5, values.size()), values));
  REQUIRE((read_all(*store, "weights", values.size()) == values));
}

TEST_CASE("job names are checked", "[store]") {
  REQUIRE(check_job_name("lenet-1.a_B").has_value());
  for (const std::string& name : {std::string(), std::string("a{b}"), std::string("a b"),
                                  std::string("a*"), std::string("a:b"), std::string(101, 'x')}) {
    REQUIRE(code_of(check_job_name(name)) == ErrorCode::kUsage);
  }
}

}  // namespace speedo::test
