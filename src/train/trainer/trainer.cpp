#include <speedo/train/trainer.hpp>

#include <atomic>
#include <utility>

#include "train/job/job_thread.hpp"
#include "train/trainer/trainer_engine.hpp"

namespace speedo {
namespace {

class ThreadTrainer : public Trainer {
 public:
  explicit ThreadTrainer(TrainerParts parts)
      : parts_(std::move(parts)), thread_(*parts_.platform, "trainer", [this] {
          return engine_ ? engine_->wait_ahead() : TrainerEngine::kNothingExpected;
        }) {}

  ~ThreadTrainer() override {
    cancel();
    thread_.post([this] { engine_.reset(); });  // Where it was made.
  }

  void prepare(Incarnation incarnation, std::function<void(Result<Digest>)> done) override {
    thread_.post([this, incarnation = std::move(incarnation), done = std::move(done)] {
      if (!engine_ || !engine_->begin_incarnation(incarnation)) {
        engine_.reset();  // Two nets at once might not fit.
        auto engine = TrainerEngine::create(parts_, incarnation, progress_);
        if (!engine) return done(engine.error());
        engine_ = std::move(engine).value();
      }
      done(engine_->model());
    });
  }

  void run(TrainMessage order, std::function<void(Result<RunReport>)> done) override {
    const std::uint64_t generation = generation_.load();
    thread_.post([this, order, generation, done = std::move(done)] {
      if (!engine_) {
        return done(Error{ErrorCode::kUnavailable, "trainer: no job is prepared"});
      }
      const auto is_cancelled = [this, generation] { return generation_.load() != generation; };
      const auto placed = take_place(order.seat, is_cancelled);
      if (!placed) return done(placed.error());
      done(engine_->run(order, is_cancelled));
    });
  }

  void save_state(SaveStateMessage order, std::function<void(Result<void>)> done) override {
    thread_.post([this, order, done = std::move(done)] {
      if (!engine_) {
        return done(Error{ErrorCode::kUnavailable, "trainer: no job is prepared"});
      }
      done(engine_->save_state(order));
    });
  }

  void cancel() override { generation_.fetch_add(1); }

  void withdraw() override {
    cancel();
    thread_.post([this] {
      if (engine_) engine_->withdraw();
    });
  }

  // However long a run's net takes to be made anew, that is no stall: nor is it in prepare().
  std::uint64_t progress() const override {
    if (makes_net_.load(std::memory_order_relaxed)) {
      progress_.fetch_add(1, std::memory_order_relaxed);
    }
    return progress_.load(std::memory_order_relaxed);
  }

 private:
  Result<void> take_place(std::uint64_t seat, const std::function<bool()>& is_cancelled) {
    SPEEDO_ASSIGN(const auto moved, engine_->moved_to(seat));
    if (!moved) return {};
    if (is_cancelled()) return Error{ErrorCode::kUnavailable, "run cancelled"};
    engine_.reset();  // Two nets at once might not fit.
    makes_net_.store(true, std::memory_order_relaxed);
    auto engine = TrainerEngine::create(parts_, *moved, progress_);
    makes_net_.store(false, std::memory_order_relaxed);
    SPEEDO_ASSIGN(engine_, std::move(engine));
    return {};
  }

  const TrainerParts parts_;
  std::atomic<std::uint64_t> generation_{0};  // of orders; cancel() starts the next
  mutable std::atomic<std::uint64_t> progress_{0};
  std::atomic<bool> makes_net_{false};        // within a run
  std::unique_ptr<TrainerEngine> engine_;     // used by the thread alone
  JobThread thread_;                          // last: its work uses the others
};

}  // namespace

std::unique_ptr<Trainer> make_trainer(TrainerParts parts) {
  return std::make_unique<ThreadTrainer>(std::move(parts));
}

}  // namespace speedo
