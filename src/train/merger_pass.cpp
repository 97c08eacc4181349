#include "train/merger_pass.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

// Chunks on their way at once, over all contributions: what keeps the store busy, within the
// caches.
constexpr std::size_t kChunksUnderWay = 16;
constexpr std::size_t kSlotsMin = 2, kSlotsMax = 8;
constexpr std::size_t kInlineChunksMax = 4;

}  // namespace

MergerPass::MergerPass(int threads) : helpers_(threads), inline_(0) {}

// A short record has few chunks and a short one: it must not cost the memory of a long one.
void MergerPass::prepare(std::size_t contributions, std::uint64_t element_count) {
  slot_count_ = std::min(std::clamp(kChunksUnderWay / contributions, kSlotsMin, kSlotsMax),
                         chunk_count(element_count));
  const std::size_t part = chunk_elements(element_count, 0);
  memory_.resize(std::max(memory_.size(), slot_count_ * contributions * part));
  while (slots_.size() < slot_count_) slots_.push_back(std::make_unique<Slot>());
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < slot_count_; ++slot) {
    slots_[slot]->parts.clear();
    for (std::size_t i = 0; i < contributions; ++i) {
      slots_[slot]->parts.push_back(std::span(memory_).subspan(next, part));
      next += part;
    }
  }
}

// The state of one pass. Chunks are requested, posted to the crew and collected in order, each
// `slots` after the other at most.
class MergerPass::Run {
 public:
  Run(MergerPass& pass, std::uint64_t element_count,
      std::span<const std::unique_ptr<RecordReader>> readers, const Merge& merge,
      const Merged& merged)
      : pass_(pass),
        element_count_(element_count),
        readers_(readers),
        merge_(merge),
        merged_(merged),
        chunks_(chunk_count(element_count)),
        crew_(chunks_ <= kInlineChunksMax ? pass.inline_ : pass.helpers_) {}

  // Slots may not be used again while the crew works on them.
  ~Run() {
    while (collected_ < posted_) slot_of(collected_++).done.wait(false);
  }

  Result<std::optional<std::size_t>> go() {
    while (collected_ < chunks_) {
      while (requested_ < chunks_ && requested_ < collected_ + pass_.slot_count_) request();
      if (posted_ < requested_) {
        SPEEDO_ASSIGN(const std::optional<std::size_t> fault, receive());
        if (fault) return fault;
        post();
      }
      // Collect what is done; wait only when there is nothing else to do.
      while (collected_ < posted_) {
        Slot& slot = slot_of(collected_);
        const bool full = posted_ == requested_ &&
                          (requested_ == chunks_ || requested_ == collected_ + pass_.slot_count_);
        if (!full && !slot.done.load(std::memory_order_acquire)) break;
        slot.done.wait(false, std::memory_order_acquire);
        if (slot.fault) return slot.fault;
        merged_(collected_, parts_of(collected_));
        ++collected_;
      }
    }
    return std::optional<std::size_t>();
  }

 private:
  Slot& slot_of(std::size_t chunk) { return *pass_.slots_[chunk % pass_.slot_count_]; }

  // The slot's parts at the chunk's true length; only the last one is shorter.
  Parts parts_of(std::size_t chunk) {
    Slot& slot = slot_of(chunk);
    const std::size_t elements = chunk_elements(element_count_, chunk);
    for (std::span<float>& part : slot.parts) part = std::span(part.data(), elements);
    return slot.parts;
  }

  void request() {
    const Parts parts = parts_of(requested_);
    for (std::size_t i = 0; i < readers_.size(); ++i) readers_[i]->request(requested_, parts[i]);
    ++requested_;
  }

  Result<std::optional<std::size_t>> receive() {
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      auto done = readers_[i]->wait(posted_);
      if (done) continue;
      const ErrorCode code = done.error().code;
      if (code != ErrorCode::kNotFound && code != ErrorCode::kCorrupt) return done.error();
      return std::optional(i);
    }
    return std::optional<std::size_t>();
  }

  void post() {
    const std::size_t chunk = posted_++;
    Slot& slot = slot_of(chunk);
    slot.done.store(false, std::memory_order_relaxed);
    crew_.post([this, chunk, &slot] {
      slot.fault = merge_(chunk, slot.parts);
      slot.done.store(true, std::memory_order_release);
      slot.done.notify_all();
    });
  }

  MergerPass& pass_;
  const std::uint64_t element_count_;
  const std::span<const std::unique_ptr<RecordReader>> readers_;
  const Merge& merge_;
  const Merged& merged_;
  const std::size_t chunks_;
  MergerCrew& crew_;
  std::size_t requested_ = 0, posted_ = 0, collected_ = 0;
};

Result<std::optional<std::size_t>> MergerPass::run(
    std::uint64_t element_count, std::span<const std::unique_ptr<RecordReader>> readers,
    const Merge& merge, const Merged& merged) {
  SPEEDO_ASSERT(!readers.empty());
  prepare(readers.size(), element_count);
  Run pass(*this, element_count, readers, merge, merged);
  return pass.go();
}

}  // namespace speedo
