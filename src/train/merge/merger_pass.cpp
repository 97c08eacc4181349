#include "train/merge/merger_pass.hpp"

#include <algorithm>
#include <cmath>

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
    slots_[slot]->memory.clear();
    for (std::size_t i = 0; i < contributions; ++i) {
      slots_[slot]->memory.push_back(std::span(memory_).subspan(next, part));
      next += part;
    }
    slots_[slot]->parts.resize(contributions);
  }
}

// The state of one pass. Chunks are requested, posted to the pool and collected in order, each
// `slots` after the other at most; what is counted are their places in that order.
class MergerPass::Run {
 public:
  using Fault = ChunkMerge::Fault;

  Run(MergerPass& pass, const Task& task, ChunkMerge& merge)
      : pass_(pass),
        task_(task),
        merge_(merge),
        count_(task.chunks.size()),
        pool_(count_ <= kInlineChunksMax ? pass.inline_ : pass.helpers_) {}

  // Slots may not be used again while the pool works on them.
  ~Run() {
    while (collected_ < posted_) slot_of(collected_++).done.wait(false);
  }

  Result<Fault> go() {
    while (collected_ < count_) {
      while (requested_ < count_ && requested_ < collected_ + pass_.slot_count_) request();
      if (posted_ < requested_) {
        SPEEDO_ASSIGN(const Fault fault, receive());
        if (fault) return fault;
        post();
      }
      // Collect what is done; wait only when there is nothing else to do.
      while (collected_ < posted_) {
        Slot& slot = slot_of(collected_);
        const bool full = posted_ == requested_ &&
                          (requested_ == count_ || requested_ == collected_ + pass_.slot_count_);
        if (!full && !slot.done.load(std::memory_order_acquire)) break;
        slot.done.wait(false, std::memory_order_acquire);
        if (const Fault fault = check(collected_)) return fault;
        merge_.put(task_.chunks[collected_]);
        ++collected_;
      }
    }
    return Fault();
  }

 private:
  Slot& slot_of(std::size_t place) { return *pass_.slots_[place % pass_.slot_count_]; }

  // Only the record's last chunk is shorter than its slot.
  void request() {
    Slot& slot = slot_of(requested_);
    const std::size_t chunk = task_.chunks[requested_];
    const std::size_t elements = chunk_elements(task_.element_count, chunk);
    for (std::size_t i = 0; i < task_.sources.size(); ++i) {
      slot.parts[i] = task_.sources[i]->in_place(chunk);
      if (!slot.parts[i].empty()) continue;
      const std::span<float> target = slot.memory[i].first(elements);
      task_.sources[i]->request(chunk, target);
      slot.parts[i] = target;
    }
    ++requested_;
  }

  bool is_in_place(const Slot& slot, std::size_t source) const {
    return slot.parts[source].data() != slot.memory[source].data();
  }

  Result<Fault> receive() {
    const Slot& slot = slot_of(posted_);
    for (std::size_t i = 0; i < task_.sources.size(); ++i) {
      if (is_in_place(slot, i)) continue;
      auto done = task_.sources[i]->wait(task_.chunks[posted_]);
      if (done) continue;
      const ErrorCode code = done.error().code;
      if (code != ErrorCode::kNotFound && code != ErrorCode::kCorrupt) return done.error();
      return std::optional(i);
    }
    return Fault();
  }

  // Of a sum that overflows, though its parts are finite, the chunk's first element.
  std::uint64_t place_of_fault(std::size_t place) {
    const Slot& slot = slot_of(place);
    const std::span<const float> part = slot.parts[*slot.fault];
    const auto is_finite = [](float value) { return std::isfinite(value); };
    const auto bad = std::ranges::find_if_not(part, is_finite);
    const auto within = bad == part.end() ? 0 : bad - part.begin();
    return std::uint64_t{task_.chunks[place]} * chunk_length() + static_cast<std::uint64_t>(within);
  }

  // What was merged is what its writers still mean, or the contribution that it is not.
  Fault check(std::size_t place) {
    const Slot& slot = slot_of(place);
    if (slot.fault) {
      pass_.fault_place_ = place_of_fault(place);
      return slot.fault;
    }
    for (std::size_t i = 0; i < task_.sources.size(); ++i) {
      if (is_in_place(slot, i) && !task_.sources[i]->confirm(task_.chunks[place])) return i;
    }
    return std::nullopt;
  }

  void post() {
    const std::size_t chunk = task_.chunks[posted_];
    Slot& slot = slot_of(posted_++);
    slot.done.store(false, std::memory_order_relaxed);
    pool_.post([this, chunk, &slot] {
      slot.fault = merge_.merge(chunk, slot.parts);
      slot.done.store(true, std::memory_order_release);
      slot.done.notify_all();
    });
  }

  MergerPass& pass_;
  const Task& task_;
  ChunkMerge& merge_;
  const std::size_t count_;
  MergerPool& pool_;
  std::size_t requested_ = 0, posted_ = 0, collected_ = 0;
};

Result<ChunkMerge::Fault> MergerPass::run(const Task& task, ChunkMerge& merge) {
  SPEEDO_ASSERT(!task.sources.empty());
  prepare(task.sources.size(), task.element_count);
  fault_place_.reset();
  Run pass(*this, task, merge);
  return pass.go();
}

}  // namespace speedo
