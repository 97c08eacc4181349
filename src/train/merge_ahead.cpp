#include "train/merge_ahead.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

// Chunks that are looked for at once: two buckets of a large net.
constexpr std::size_t kChunksLookedFor = 32;

bool is_same(const MergeJob& a, const MergeJob& b) {
  return a.iteration == b.iteration && a.mean == b.mean && a.stage == b.stage &&
         a.lr_scale == b.lr_scale && a.contributions == b.contributions;
}

}  // namespace

// The last parameters' gradients are the first to be final.
MergeAhead::MergeAhead(RecordStore& store, std::unique_ptr<ChunkMerge> merge, const MergeJob& job,
                       std::uint64_t term, std::uint64_t element_count)
    : job_(job), element_count_(element_count), merge_(std::move(merge)) {
  for (const auto& contribution : job.contributions) {
    readers_.push_back(store.read_ahead(contribution_key(term, contribution.worker.value),
                                        {.version = contribution.run.value,
                                         .element_count = element_count}));
  }
  for (std::size_t chunk = chunk_count(element_count); chunk-- > 0;) left_.push_back(chunk);
}

std::vector<std::size_t> MergeAhead::find_ready() {
  const std::span<const std::size_t> next =
      std::span(left_).first(std::min(left_.size(), kChunksLookedFor));
  for (const auto& reader : readers_) reader->look(next);
  std::vector<std::size_t> seen_by(next.size());
  for (const auto& reader : readers_) {
    const std::vector<bool> seen = reader->seen();
    for (std::size_t i = 0; i < seen.size(); ++i) seen_by[i] += seen[i] ? 1 : 0;
  }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (seen_by[i] == readers_.size()) ready.push_back(next[i]);
  }
  return ready;
}

Result<bool> MergeAhead::advance(MergerPass& pass) {
  const std::vector<std::size_t> ready = find_ready();
  if (ready.empty()) return false;
  std::vector<ChunkSource*> sources;
  for (const auto& reader : readers_) sources.push_back(reader.get());
  const MergerPass::Task task{
      .element_count = element_count_, .chunks = ready, .sources = sources};
  SPEEDO_ASSIGN(const ChunkMerge::Fault fault, pass.run(task, *merge_));
  if (fault) {
    return Error{ErrorCode::kNotFound,
                 "the contribution of worker " +
                     std::to_string(job_.contributions[*fault].worker.value) +
                     " changed while it was read, or is not finite"};
  }
  std::erase_if(left_, [&](std::size_t chunk) { return std::ranges::count(ready, chunk) > 0; });
  merged_.insert(merged_.end(), ready.begin(), ready.end());
  return true;
}

bool MergeAhead::fits(const MergeJob& job,
                      std::span<const std::unique_ptr<RecordReader>> readers) const {
  if (!is_same(job, job_) || readers.size() != readers_.size()) return false;
  return std::ranges::all_of(merged_, [&](std::size_t chunk) {
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (readers[i]->checksum(chunk) != readers_[i]->checksum(chunk)) return false;
    }
    return true;
  });
}

}  // namespace speedo
