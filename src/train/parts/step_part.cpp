#include "train/parts/step_part.hpp"

#include <string>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "train/replicas/factor_plan.hpp"
#include "train/replicas/step_header.hpp"
#include "train/replicas/step_merge.hpp"

namespace speedo {

// The part's chunks; a manifest is the master's to write.
class StepPart::Writer : public RecordWriter {
 public:
  Writer(StepPart& part, std::unique_ptr<PartWriter> chunks)
      : part_(part), chunks_(std::move(chunks)) {}

  void write(std::size_t chunk, std::span<const float> values) override {
    chunks_->write(part_.setup_.clip.whole_chunk(chunk), values);
  }
  void set_state(std::string /*state*/) override {}
  bool is_sent() const override { return chunks_->is_sent(); }
  Result<void> finish() override {
    SPEEDO_ASSIGN(part_.written_, chunks_->finish());
    return {};
  }

 private:
  StepPart& part_;
  const std::unique_ptr<PartWriter> chunks_;
};

StepPart::StepPart(const PartSetup& setup, const UpdateSpec& update)
    : setup_(setup),
      contribution_(setup.layout,
                    choose_factors(update, setup.config.factor_shapes,
                                   setup.config.expected_workers),
                    setup.clip.parts),
      count_(clipped_count(contribution_.count(), setup.clip)),
      store_(setup.store, setup.clip,
             {setup.layout.digest(), setup.layout.digest(), contribution_.count()}, 0, nullptr),
      pass_(setup.config.threads) {
  SPEEDO_ASSERT(update.replicated);
}

PartAnswer StepPart::merge(const part_order::Merge& order) {
  auto answer = try_merge(order);
  forget_expected();
  if (!answer) return part_answer::Failed{order.id, answer.error()};
  return std::move(answer).value();
}

Result<PartAnswer> StepPart::try_merge(const part_order::Merge& order) {
  const std::uint64_t version = order.base.value + 1;
  const PartyTerms terms{.term = setup_.config.term,
                         .model = setup_.layout.digest(),
                         .element_count = count_};
  MergeResult result;
  SPEEDO_ASSIGN(const MergeParty party,
                open_party(store_, terms, order.job.contributions, result.rejected));
  if (!result.rejected.empty()) return PartAnswer(part_answer::Rejected{order.id, result.rejected});
  const bool goes_on = ahead_ && expected_->base == order.base &&
                       ahead_->fits(order.job, party.readers);
  if (!goes_on) ahead_.reset();
  const MergeCourse course =
      goes_on ? course_of(*ahead_)
              : whole_course(begin(party.contributions.size(), version), count_);
  SPEEDO_ASSIGN(const ChunkMerge::Fault fault, end_course(course, party, count_, pass_, {}));
  if (fault) {
    const auto where = pass_.fault_place() ? std::optional<std::string>("a gradient or a factor")
                                           : std::nullopt;
    reject(party.contributions[*fault].worker, where, result);
    return PartAnswer(part_answer::Rejected{order.id, result.rejected, result.not_finite});
  }
  SPEEDO_ASSERT(written_.has_value());
  return PartAnswer(part_answer::Written{
      .id = order.id,
      .part = *std::exchange(written_, std::nullopt),
      .begun_ahead = goes_on || count_ == 0});
}

// Requires: the merge begun before is gone.
std::unique_ptr<ChunkMerge> StepPart::begin(std::size_t contributions, std::uint64_t version) {
  SPEEDO_ASSERT(!ahead_);
  const PartClip& clip = setup_.clip;
  if (!step_ || !step_->is_of(contributions, clip.parts)) {
    step_.emplace(contribution_, contributions, clip.parts);
  }
  values_.resize(step_->part_count(clip.part));
  written_.reset();
  RecordInfo info;
  info.model = setup_.layout.digest();
  info.version = version;
  info.base_version = version - 1;
  info.element_count = step_->count();
  info.term = setup_.config.term;
  const auto slot = static_cast<std::uint32_t>(version % kContributionSlots);
  return merge_step({.step = *step_,
                     .part = clip.part,
                     .state = {},
                     .values = values_,
                     .writer = std::make_unique<Writer>(
                         *this, setup_.store->write_part(step_key(info.term), info,
                                                         {clip.part, slot}))});
}

void StepPart::expect(const part_order::Expect& order) {
  forget_expected();
  if (count_ > 0) expected_ = order;
}

// What goes wrong here goes wrong again, and is named, when the merge is ordered.
bool StepPart::merge_ahead() {
  if (!expected_) return false;
  if (!ahead_) {
    const MergeJob& job = expected_->job;
    auto merge = begin(job.contributions.size(), expected_->base.value + 1);
    ahead_ = std::make_unique<MergeAhead>(store_, std::move(merge), job, setup_.config.term,
                                          count_);
  }
  const auto advanced = ahead_->advance(pass_);
  if (!advanced) forget_expected();
  return advanced && *advanced;
}

void StepPart::forget_expected() {
  ahead_.reset();
  expected_.reset();
}

}  // namespace speedo
