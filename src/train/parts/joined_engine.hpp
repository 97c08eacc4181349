#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/checkpoint.hpp>

#include "train/merge/merger_work.hpp"
#include "train/parts/part_seats.hpp"

namespace speedo {

// The master's weights in parts, each with a merger of its own: orders all of them, and makes what
// they have written visible by one manifest. Has no weights itself once training has begun.
// Thread safety: one thread at a time.
class JoinedEngine : public MergerWork {
 public:
  // Errors: kUsage, for what cannot be merged in parts; kMismatch as of make_merger().
  static Result<std::unique_ptr<JoinedEngine>> create(PartSetup setup, Checkpoint start,
                                                      std::shared_ptr<PartDesk> desk);

  Result<MergeResult> merge(const MergeJob& job) override;
  void expect(const MergeJob& job) override;
  bool expects() const override { return false; }
  bool merge_ahead() override { return false; }
  void write_checkpoint(bool /*may_go_on*/) override {}
  Instant publish_behind() override;
  void close() override {}
  Result<Version> enter_stage(std::uint32_t stage, const std::string& state) override;
  Result<Merger::Copy> take_copy() override;
  Result<void> restore_lost_weights() override;

 private:
  JoinedEngine(PartSetup setup, Checkpoint start, std::shared_ptr<PartDesk> desk);
  RecordInfo info_of(Version version, const std::string& state) const;
  Result<void> put_start(const std::string& state);
  void erase_start();
  Result<void> put_histories(const std::vector<std::vector<float>>& histories);
  Result<void> open_closed(Version version, const std::string& state,
                           const std::function<Result<void>()>& prepare);
  Result<void> open_closed();
  Result<void> open_stage(std::uint32_t stage, const std::string& state);
  Result<void> restore_manifest();
  Result<bool> find_again(std::size_t part);
  void become(Version version, const std::string& state, std::vector<WrittenPart> written);
  Error lost_part(const std::string& what);
  Result<void> take_tried_parts();
  Result<bool> is_better_kept(std::size_t part, const WrittenPart& tried);
  Merger::Copy joined(std::span<const part_answer::Copied> parts) const;
  Result<void> note(Result<void> done);
  Result<bool> open(std::span<const std::size_t> parts, Version version, const std::string& state);
  std::vector<WrittenPart> of_all_servers(std::vector<WrittenPart> written) const;
  Result<void> put_manifest(Version version, const std::string& state,
                            const std::vector<WrittenPart>& written);

  const PartSetup setup_;
  const std::shared_ptr<ParameterStore> store_;
  PartSeats seats_;
  std::optional<Checkpoint> start_;     // until training has begun
  bool is_start_open_ = false;          // by the first stage's parts, and published
  std::optional<std::uint32_t> stage_;  // none before the first was entered
  Version version_;
  std::string state_;
  std::vector<WrittenPart> written_;   // what the manifest of this version names
  // By part: where mergers have written this version before those that `written_` is of.
  std::vector<std::vector<std::uint32_t>> earlier_slots_;
  // What another manifest of this version names, of parts that were opened anew: the answer to it
  // was lost. Empty: there is none.
  std::vector<WrittenPart> tried_;
  // The store may have a manifest that counts for nothing: the answer to it was lost.
  bool in_doubt_ = false;
  std::optional<Error> superseded_;    // another master has the job: nothing is written any more
};

// Whether such a job can be merged in parts. Error: kUsage, saying what needs the whole.
Result<void> check_parts(const std::vector<UpdateSpec>& stages,
                         const caffe::SolverParameter& solver);

// A merger by parts. `desk`: where mergers that run elsewhere offer themselves; until one does, and
// when it is gone, its part is merged here. Errors: as make_merger(), and of check_parts().
Result<std::unique_ptr<Merger>> make_joined_merger(const PartSetup& setup, Checkpoint start,
                                                   std::shared_ptr<PartDesk> desk);

}  // namespace speedo
