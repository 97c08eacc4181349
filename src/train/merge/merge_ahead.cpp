#include "train/merge/merge_ahead.hpp"

#include <algorithm>
#include <iterator>

#include <speedo/base/assert.hpp>

#include "train/merge/merger_looks.hpp"

namespace speedo {
namespace {

// Of a contribution of which nothing is known to be there, one of so many of these.
constexpr std::size_t kLooksApart = 8;

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
    coming_.push_back({store.read_ahead(contribution_key(term, contribution.worker.value),
                                        {.version = contribution.run.value,
                                         .element_count = element_count}),
                       std::vector<bool>(chunk_count(element_count))});
  }
  for (std::size_t chunk = chunk_count(element_count); chunk-- > 0;) left_.push_back(chunk);
}

void MergeAhead::look(const Chunks& wanted) {
  for (std::size_t i = 0; i < coming_.size(); ++i) {
    if (!wanted[i].empty()) coming_[i].reader->look(wanted[i]);
  }
  for (std::size_t i = 0; i < coming_.size(); ++i) {
    if (wanted[i].empty()) continue;
    const std::vector<bool> seen = coming_[i].reader->seen();
    for (std::size_t j = 0; j < seen.size(); ++j) {
      if (seen[j]) coming_[i].is_there[wanted[i][j]] = true;
    }
  }
}

// Whoever waits long asks often: for a few, and for the others only if one of those has come.
std::vector<std::size_t> MergeAhead::find_ready() {
  const std::span<const std::size_t> next =
      std::span(left_).first(std::min(left_.size(), kChunksLookedFor));
  Chunks few(coming_.size()), others(coming_.size());
  for (std::size_t i = 0; i < coming_.size(); ++i) {
    std::size_t lacking = 0;
    for (const std::size_t chunk : next) {
      if (coming_[i].is_there[chunk]) continue;
      (lacking++ % kLooksApart == 0 ? few : others)[i].push_back(chunk);
    }
  }
  look(few);
  for (std::size_t i = 0; i < coming_.size(); ++i) {
    const auto has = [&](std::size_t chunk) { return coming_[i].is_there[chunk]; };
    if (std::ranges::none_of(few[i], has)) others[i].clear();
  }
  look(others);
  std::vector<std::size_t> ready;
  std::ranges::copy_if(next, std::back_inserter(ready), [this](std::size_t chunk) {
    return std::ranges::all_of(coming_, [&](const Coming& it) { return it.is_there[chunk]; });
  });
  return ready;
}

Result<bool> MergeAhead::advance(MergerPass& pass) {
  const std::vector<std::size_t> ready = find_ready();
  if (ready.empty()) return false;
  std::vector<ChunkSource*> sources;
  for (const Coming& each : coming_) sources.push_back(each.reader.get());
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
  if (!is_same(job, job_) || readers.size() != coming_.size()) return false;
  return std::ranges::all_of(merged_, [&](std::size_t chunk) {
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (readers[i]->checksum(chunk) != coming_[i].reader->checksum(chunk)) return false;
    }
    return true;
  });
}

}  // namespace speedo
