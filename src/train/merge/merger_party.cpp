#include "train/merge/merger_party.hpp"

#include <numeric>
#include <utility>

#include "base/log.hpp"

namespace speedo {
namespace {

// Whether a record is what a worker was told to contribute. Error: kMismatch.
Result<void> check(const RecordInfo& info, const MergeJob::Contribution& contribution,
                   const PartyTerms& terms) {
  if (info.model != terms.model || info.element_count != terms.element_count) {
    return Error{ErrorCode::kMismatch, "it is of another model or stage"};
  }
  if (info.worker != contribution.worker.value) {
    return Error{ErrorCode::kMismatch, "it is of worker " + std::to_string(info.worker)};
  }
  if (info.version != contribution.run.value) {
    return Error{ErrorCode::kMismatch,
                 "the store has that of run " + std::to_string(info.version) + " in its place"};
  }
  return {};
}

}  // namespace

std::vector<ChunkSource*> MergeParty::sources() const {
  std::vector<ChunkSource*> all;
  for (const auto& reader : readers) all.push_back(reader.get());
  return all;
}

Result<MergeParty> open_party(RecordStore& store, const PartyTerms& terms,
                              std::span<const MergeJob::Contribution> contributions,
                              std::vector<WorkerId>& rejected) {
  std::vector<std::string> keys;
  for (const auto& contribution : contributions) {
    keys.push_back(contribution_key(terms.term, contribution.worker.value));
  }
  auto readers = store.read_all(keys);
  MergeParty party;
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    const auto& contribution = contributions[i];
    const Result<void> fit = readers[i] ? check((*readers[i])->info(), contribution, terms)
                                        : Result<void>(readers[i].error());
    if (fit) {
      party.contributions.push_back(contribution);
      party.readers.push_back(std::move(*readers[i]));
      continue;
    }
    const Error& error = fit.error();
    const bool its_fault = error.code == ErrorCode::kNotFound ||
                           error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kMismatch;
    if (!its_fault) return error;
    SPEEDO_WARN("contribution of worker {}, run {}, is not merged: {}", contribution.worker.value,
                contribution.run.value, error.message);
    rejected.push_back(contribution.worker);
  }
  return party;
}

void reject(WorkerId worker, const std::optional<std::string>& not_finite_in,
            MergeResult& result) {
  SPEEDO_WARN("contribution of worker {} is not merged: {}", worker.value,
              not_finite_in ? "it is not finite in " + *not_finite_in : "it is missing or damaged");
  result.rejected.push_back(worker);
  if (not_finite_in) result.not_finite.push_back(worker);
}

void name_lost_alone(MergeResult& result) {
  result.rejected = lost_in(result);
  result.not_finite.clear();
  result.outliers.clear();
}

MergeCourse whole_course(std::unique_ptr<ChunkMerge> merge, std::uint64_t element_count) {
  std::vector<std::size_t> chunks(chunk_count(element_count));
  std::iota(chunks.begin(), chunks.end(), std::size_t{0});
  return {std::move(merge), std::move(chunks)};
}

MergeCourse course_of(MergeAhead& ahead) {
  std::vector<std::size_t> lacking = ahead.lacking();
  return {ahead.take(), std::move(lacking)};
}

Result<ChunkMerge::Fault> end_course(const MergeCourse& course, const MergeParty& party,
                                     std::uint64_t element_count, MergerPass& pass,
                                     const std::string& state) {
  course.merge->ordered();
  const std::vector<ChunkSource*> sources = party.sources();
  const MergerPass::Task task{
      .element_count = element_count, .chunks = course.chunks, .sources = sources};
  SPEEDO_ASSIGN(const ChunkMerge::Fault fault, pass.run(task, *course.merge));
  if (!fault) SPEEDO_TRY(course.merge->finish(state));
  return fault;
}

}  // namespace speedo
