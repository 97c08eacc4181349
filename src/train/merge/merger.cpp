#include <speedo/train/merger.hpp>

#include <algorithm>
#include <mutex>
#include <optional>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/pause.hpp>

#include "base/answer.hpp"
#include "base/trace.hpp"
#include "train/job/job_thread.hpp"
#include "train/merge/merger_engine.hpp"
#include "train/merge/merger_looks.hpp"

namespace speedo {
namespace {

Error closing() { return Error{ErrorCode::kUnavailable, "the merger is being closed"}; }

// An engine and the thread that it works on.
class ThreadedMerger : public Merger {
 public:
  explicit ThreadedMerger(Platform& platform)
      : platform_(platform),
        pause_(platform),
        thread_(platform, "merger", [this] { return idle(); }) {}

  ~ThreadedMerger() override {
    stop_waiting();
    thread_.end();
    // What the engine made on the thread ends there.
    thread_.post([this] {
      if (engine_) engine_->close();
      engine_.reset();
    });
  }

  // Makes the engine on the thread: some devices belong to the thread that opens them.
  Result<void> make_engine(const std::function<Result<std::unique_ptr<MergerWork>>()>& make) {
    Answer<Result<void>> made(platform_);
    thread_.post([&] {
      auto engine = make();
      if (engine) engine_ = std::move(*engine);
      made.set(engine ? Result<void>() : Result<void>(engine.error()));
    });
    return made.wait();
  }

  void merge(MergeJob job,
             std::function<void(Result<MergeResult>)> done) override {
    thread_.post([this, job = std::move(job), done = std::move(done)] {
      if (thread_.is_ending()) return done(closing());
      done(persist<MergeResult>([&] {
        const TraceSpan span("merge");
        return engine_->merge(job);
      }));
      engine_->write_checkpoint(thread_.has_work());
      engine_->publish_behind();
      idle_since_ = platform_.clock().now();
    });
  }

  void expect(MergeJob job) override {
    thread_.post([this, job = std::move(job)] {
      if (thread_.is_ending()) return;
      engine_->expect(job);
      engine_->write_checkpoint(thread_.has_work());  // Finishes the one that the merge began.
      expected_at_ = platform_.clock().now();
    });
  }

  void enter_stage(std::uint32_t stage, std::string state,
                   std::function<void(Result<Version>)> done) override {
    thread_.post([this, stage, state = std::move(state), done = std::move(done)] {
      if (thread_.is_ending()) return done(closing());
      done(persist<Version>([&] { return engine_->enter_stage(stage, state); }));
    });
  }

  void copy(std::function<void(Result<Copy>)> done) override {
    thread_.post([this, done = std::move(done)] {
      engine_->write_checkpoint(false);  // The one under way: nobody else may come to finish it.
      done(persist<Copy>([&] { return engine_->take_copy(); }));
    });
  }

  std::optional<Error> waits_because() override {
    const std::lock_guard lock(mutex_);
    return waits_because_;
  }

  void stop_waiting() override { pause_.end(); }

 private:
  // Returns how long there is nothing to do.
  Instant idle() {
    if (!engine_ || thread_.is_ending()) return kMergerLookInterval;
    if (engine_->merge_ahead()) return Instant{0};
    const Instant published = std::min<Instant>(engine_->publish_behind(), kMergerLookInterval);
    const Instant now = platform_.clock().now();
    if (now - idle_since_ >= kMergerLookInterval) {
      const auto restored = engine_->restore_lost_weights();
      set_waits_because(restored ? std::nullopt : std::optional(restored.error()));
      idle_since_ = platform_.clock().now();
    }
    if (!engine_->expects()) return published;
    return std::min(published, ahead_pause(now - expected_at_));
  }

  // A failed attempt leaves everything as it was, or knows how far it came, so the next one is the
  // same.
  template <class T>
  Result<T> persist(const std::function<Result<T>()>& attempt) {
    Result<T> result = attempt();
    while (!result && is_transient(result.error().code)) {
      set_waits_because(result.error());
      if (!pause_.wait(kStoreReturnPoll)) break;
      result = attempt();
    }
    set_waits_because(std::nullopt);
    return result;
  }

  void set_waits_because(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    waits_because_ = std::move(error);
  }

  Platform& platform_;
  RealPause pause_;  // between attempts, as long as a store is waited for
  std::mutex mutex_;
  std::optional<Error> waits_because_;  // guarded by mutex_
  // The next three: of the thread.
  std::unique_ptr<MergerWork> engine_;
  Instant idle_since_{0}, expected_at_{0};
  JobThread thread_;  // last: it uses the others
};

}  // namespace

Result<std::unique_ptr<Merger>> make_merger_thread(
    Platform& platform, const std::function<Result<std::unique_ptr<MergerWork>>()>& make) {
  auto merger = std::make_unique<ThreadedMerger>(platform);
  SPEEDO_TRY(merger->make_engine(make));
  return std::unique_ptr<Merger>(std::move(merger));
}

Result<std::unique_ptr<Merger>> make_merger(
    const MergerConfig& config, const ParameterLayout& layout, const caffe::SolverParameter& solver,
    Checkpoint start, std::shared_ptr<RecordStore> store,
    std::function<Result<std::unique_ptr<Backend>>()> make_backend) {
  return make_merger_thread(*config.platform, [&]() -> Result<std::unique_ptr<MergerWork>> {
    SPEEDO_ASSIGN(auto engine, MergerEngine::create(config, layout, solver, std::move(start),
                                                    std::move(store), make_backend));
    return std::unique_ptr<MergerWork>(std::move(engine));
  });
}

}  // namespace speedo
