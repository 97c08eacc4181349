// When the weights of a master whose workers do not read them in the store go there again.
#include "train/merge/merger_publication.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <speedo/store/memory_store.hpp>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"

namespace speedo {
namespace {

using PublicationTime = std::chrono::milliseconds;

struct PublishedWeights {
  test::ManualClock clock;
  std::shared_ptr<RecordStore> store = make_memory_store();
  MergerPublication publication{clock, nullptr};
  std::vector<float> values = std::vector<float>(8, 1.0F);
  std::uint64_t version = 0;

  void publish(PublicationTime takes) {
    RecordInfo info;
    info.version = ++version;
    info.element_count = values.size();
    publication.begin(*store, info, values);
    clock.advance(takes);
    publication.count_merge(false);
    REQUIRE(publication.finish());
  }
  // How long training goes on, with a merge each 10 ms, before the next is due.
  PublicationTime until_due() {
    constexpr PublicationTime kMerge{10};
    PublicationTime passed{0};
    for (; !publication.is_due(version + 1); passed += kMerge) {
      clock.advance(kMerge);
      publication.count_merge(false);
    }
    return passed;
  }
};

TEST_CASE("a publication that waited for a server does not put off the next one") {
  PublishedWeights weights;
  weights.publish(PublicationTime{1});
  CHECK(weights.until_due() == PublicationTime{1000});
  weights.publish(PublicationTime{30000});
  CHECK(weights.until_due() == PublicationTime{0});
  weights.publish(PublicationTime{1});
  CHECK(weights.until_due() == PublicationTime{1000});
  // Even the first one.
  PublishedWeights begins;
  begins.publish(PublicationTime{500});
  CHECK(begins.until_due() == PublicationTime{500});
}

TEST_CASE("publications that always take long come so much more seldom") {
  PublishedWeights weights;
  for (int i = 0; i < 8; ++i) weights.publish(PublicationTime{500});
  CHECK(weights.until_due() == PublicationTime{9500});
}

TEST_CASE("a first publication of many bytes takes the time that it takes") {
  PublishedWeights weights;
  weights.values.resize(10'000'000);  // 40 MB
  weights.publish(PublicationTime{150});
  CHECK(weights.until_due() == PublicationTime{2850});
  // What a slow server takes is counted, what goes beyond is not before it comes again.
  PublishedWeights slow;
  slow.values.resize(10'000'000);
  slow.publish(PublicationTime{1000});
  CHECK(slow.until_due() == PublicationTime{3000});
  slow.publish(PublicationTime{1000});
  CHECK(slow.until_due() == PublicationTime{7000});
}

TEST_CASE("a checkpoint that goes with a publication takes time, too") {
  PublishedWeights weights;
  const auto publish_both = [&](PublicationTime longer, bool done) {
    weights.publication.begin_beside(80'000'000);
    weights.publish(PublicationTime{50});
    weights.clock.advance(longer);
    weights.publication.count_merge(false);
    weights.publication.end_beside(done);
  };
  publish_both(PublicationTime{150}, true);
  CHECK(weights.until_due() == PublicationTime{4800});
  // One that failed says nothing of what writing takes.
  publish_both(PublicationTime{300}, false);
  CHECK(weights.until_due() == PublicationTime{4650});
  // None was begun: nothing ends.
  weights.publish(PublicationTime{50});
  weights.publication.end_beside(true);
  CHECK(weights.until_due() == PublicationTime{4950});
}

}  // namespace
}  // namespace speedo
