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
  const std::vector<float> values = std::vector<float>(8, 1.0F);
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

}  // namespace
}  // namespace speedo
