#include "sim/plan/plan_pieces.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/store/record_store.hpp>

#include "train/replicas/factor_plan.hpp"

namespace speedo::sim {
namespace {

// Of a record: more show the overlap finer, and take longer to plan.
constexpr std::uint64_t kPiecesMax = 32;

std::uint64_t round_up_ratio(std::uint64_t value, std::uint64_t by) {
  return (value + by - 1) / by;
}

// Those that travel, by bucket.
std::vector<FactorShape> factors_of(const std::vector<BucketCosts>& buckets,
                                    const UpdateSpec& update, std::uint64_t workers) {
  std::vector<FactorShape> possible;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    if (buckets[bucket].factors.rows == 0) continue;
    possible.push_back(buckets[bucket].factors);
    possible.back().slot = bucket;
  }
  return choose_factors(update, possible, workers);
}

}  // namespace

std::vector<BucketCosts> buckets_of(const NetCosts& net) {
  if (!net.buckets.empty()) return net.buckets;
  return {{.parameters = net.parameters, .needed = 0.0, .final = 1.0}};
}

Pieces::Pieces(const NetCosts& net, const UpdateSpec& update, std::uint64_t workers)
    : workers_(workers) {
  const std::vector<BucketCosts> buckets = buckets_of(net);
  factors_.resize(buckets.size());
  std::vector<std::uint64_t> sizes;
  for (const BucketCosts& bucket : buckets) sizes.push_back(bucket.parameters);
  for (const FactorShape& shape : factors_of(buckets, update, workers)) {
    factors_[shape.slot] = static_cast<std::uint64_t>(shape.factor_count());
    sizes[shape.slot] -= static_cast<std::uint64_t>(shape.height * shape.width);
    sizes[shape.slot] += factors_[shape.slot];
  }
  begins_.push_back(0);
  for (const std::uint64_t size : sizes) begins_.push_back(begins_.back() + size);
  array_floats_ = begins_.back();
  if (averages_histories(update)) arrays_ += net.histories;
  floats_ = array_floats_ * arrays_;
  const std::uint64_t chunks = round_up_ratio(floats_, kChunkElements);
  piece_floats_ = kChunkElements * round_up_ratio(chunks, kPiecesMax);
  count_ = static_cast<std::size_t>(round_up_ratio(floats_, piece_floats_));
}

std::uint64_t Pieces::floats(std::size_t piece) const {
  SPEEDO_ASSERT(piece < count_);
  return std::min(piece_floats_, floats_ - piece * piece_floats_);
}

std::uint64_t Pieces::merged_floats(std::size_t piece) const {
  const std::uint64_t begin = piece * piece_floats_, end = begin + floats(piece);
  std::uint64_t factors = 0;
  for (std::size_t bucket = 0; bucket < factors_.size(); ++bucket) {
    const std::uint64_t last = begins_[bucket + 1], first = last - factors_[bucket];
    const std::uint64_t from = std::max(begin, first), to = std::min(end, last);
    factors += to > from ? to - from : 0;
  }
  return end - begin + (workers_ - 1) * factors;
}

std::uint64_t Pieces::all_merged_floats() const {
  std::uint64_t sum = 0;
  for (std::size_t piece = 0; piece < count_; ++piece) sum += merged_floats(piece);
  return sum;
}

Pieces::Range Pieces::covering(std::uint64_t begin, std::uint64_t end) const {
  if (begin == end) return {};
  return {static_cast<std::size_t>(begin / piece_floats_),
          static_cast<std::size_t>(round_up_ratio(end, piece_floats_))};
}

Pieces::Range Pieces::of_bucket(std::size_t bucket) const {
  SPEEDO_ASSERT(bucket + 1 < begins_.size());
  return covering(begins_[bucket], begins_[bucket + 1]);
}

Pieces::Range Pieces::of_histories() const { return covering(array_floats_, floats_); }

Pieces::Tally::Tally(const Pieces& pieces) : pieces_(pieces) {
  for (std::size_t piece = 0; piece < pieces.count(); ++piece) {
    lacking_.push_back(pieces.floats(piece));
  }
}

std::vector<std::size_t> Pieces::Tally::add(std::size_t bucket) {
  SPEEDO_ASSERT(bucket + 1 < pieces_.begins_.size());
  std::vector<std::size_t> whole;
  for (std::uint64_t array = 0; array < pieces_.arrays_; ++array) {
    const std::uint64_t offset = array * pieces_.array_floats_;
    add(offset + pieces_.begins_[bucket], offset + pieces_.begins_[bucket + 1], whole);
  }
  return whole;
}

std::vector<std::size_t> Pieces::Tally::add_all() {
  std::vector<std::size_t> whole;
  add(0, pieces_.floats_, whole);
  return whole;
}

void Pieces::Tally::add(std::uint64_t begin, std::uint64_t end, std::vector<std::size_t>& whole) {
  while (begin < end) {
    const auto piece = static_cast<std::size_t>(begin / pieces_.piece_floats_);
    const std::uint64_t piece_end = (piece + 1) * pieces_.piece_floats_;
    const std::uint64_t part = std::min(end, piece_end) - begin;
    SPEEDO_ASSERT(part <= lacking_[piece]);
    lacking_[piece] -= part;
    if (lacking_[piece] == 0) whole.push_back(piece);
    begin += part;
  }
}

}  // namespace speedo::sim
