#include "train/job/job_part.hpp"

#include <utility>

#include <speedo/base/assert.hpp>

#include "train/job/job_solver.hpp"
#include "train/parts/part_copy.hpp"
#include "train/parts/part_record.hpp"

namespace speedo {

JobPart::JobPart(const TrainerParts& parts, OpenStore open_store, WelcomedStore::Options options,
                 MergerConfig merging)
    : parts_(parts),
      options_(std::move(options)),
      merging_(std::move(merging)),
      welcomed_(std::move(open_store), options_),
      opening_(*options_.platform, "job") {}

JobPart::~JobPart() {
  ending_ = true;
  if (const auto used = welcomed_.store()) used->stop_waiting();
}

void JobPart::prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) {
  const std::uint64_t number = ++preparations_;
  opening_.post([this, welcome, number, done = std::move(done)] {
    done(prepare_now(welcome, [this, number] { return ending_ || preparations_ != number; }));
  });
}

Result<Digest> JobPart::prepare_now(const WelcomeMessage& welcome,
                                    const WelcomedStore::Stale& stale) {
  merger_.reset();
  SPEEDO_ASSIGN(const std::string bytes, welcomed_.wait_for_job(welcome, stale));
  SPEEDO_ASSIGN(const JobSpec job, decode_job(bytes));
  if (parts_.choose_kernels) SPEEDO_TRY(parts_.choose_kernels(job));
  store_ = welcomed_.store();
  SPEEDO_ASSIGN(const std::string parts_bytes,
                welcomed_.wait_for_record(parts_key(), welcome, stale));
  SPEEDO_ASSIGN(PartRecord record, decode_parts(parts_bytes));
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(job));
  if (welcome.part == 0 || welcome.part > store_->parts()) {
    return Error{ErrorCode::kMismatch,
                 "the master names shard " + std::to_string(welcome.part) + ", the store has " +
                     std::to_string(store_->parts())};
  }
  store_->fence(welcome.term);
  clip_ = {welcome.part - 1, store_->parts()};
  const Digest model = record.layout.digest();
  MergerConfig config = merging_;
  config.stages = job.stages;
  config.publish_interval = record.publish_interval;
  config.factor_shapes = std::move(record.factor_shapes);
  config.expected_workers = job.expected_workers;
  config.term = welcome.term;
  config.platform = options_.platform;
  PartSetup setup{.clip = clip_,
                  .config = std::move(config),
                  .layout = std::move(record.layout),
                  .solver = std::move(solver),
                  .store = store_,
                  .make_backend = parts_.make_backend,
                  .has_copies = record.has_copies};
  merger_ = std::make_unique<PartMerger>(std::move(setup),
                                         [this](PartAnswer answer) { say(std::move(answer)); });
  return model;
}

void JobPart::say(PartAnswer answer) {
  SPEEDO_ASSERT(answer_ != nullptr);
  answer_(with_copy_stored(*store_, clip_.part, std::move(answer)));
}

void JobPart::take(PartOrder order) {
  opening_.post([this, order = std::move(order)] {
    if (merger_) merger_->take(order);
  });
}

void JobPart::run(const TrainMessage& /*order*/, std::function<void(Result<RunReport>)> done) {
  done(Error{ErrorCode::kInternal, "the merger of a shard trains nothing"});
}

void JobPart::save_state(const SaveStateMessage& /*order*/,
                         std::function<void(Result<void>)> done) {
  done(Error{ErrorCode::kInternal, "the merger of a shard has no state of a worker"});
}

void JobPart::look_for_end(std::uint64_t term, std::function<void(bool)> done) {
  opening_.post(
      [this, term, done = std::move(done)] { done(!ending_ && welcomed_.is_over(term)); });
}

void JobPart::cancel() {
  opening_.post([this] { merger_.reset(); });
}

}  // namespace speedo
