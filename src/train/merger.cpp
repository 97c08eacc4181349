#include <speedo/train/merger.hpp>

#include <future>

#include <speedo/base/assert.hpp>

#include "train/merger_engine.hpp"
#include "train/merger_thread.hpp"

namespace speedo {
namespace {

Error closing() { return Error{ErrorCode::kUnavailable, "the merger is being closed"}; }

// An engine and the thread that it works on.
class ThreadedMerger : public Merger {
 public:
  explicit ThreadedMerger(std::unique_ptr<MergerEngine> engine) : engine_(std::move(engine)) {
    thread_.start([this] {
      if (engine_) engine_->restore_lost_weights();
    });
  }

  ~ThreadedMerger() override {
    // What the engine made on the thread ends there.
    thread_.post([this](bool) { engine_.reset(); });
    thread_.stop();
  }

  // Makes the rule on the thread: some devices belong to the thread that opens them.
  Result<void> make_rule(const std::function<Result<std::unique_ptr<MergerRule>>()>& make) {
    std::promise<Result<void>> made;
    thread_.post([&](bool) {
      auto rule = make();
      if (rule) engine_->set_rule(std::move(*rule));
      made.set_value(rule ? Result<void>() : Result<void>(rule.error()));
    });
    return made.get_future().get();
  }

  void merge(master_command::StartMerge job,
             std::function<void(Result<MergeResult>)> done) override {
    thread_.post([this, job = std::move(job), done = std::move(done)](bool stopping) {
      done(stopping ? Result<MergeResult>(closing()) : engine_->merge(job));
    });
  }

  void publish(std::function<void(Result<Version>)> done) override {
    thread_.post([this, done = std::move(done)](bool stopping) {
      done(stopping ? Result<Version>(closing()) : engine_->publish());
    });
  }

  void copy(std::function<void(Copy)> done) override {
    thread_.post([this, done = std::move(done)](bool) { done(engine_->copy()); });
  }

 private:
  std::unique_ptr<MergerEngine> engine_;
  MergerThread thread_;  // last: it uses the engine
};

}  // namespace

Result<std::unique_ptr<Merger>> make_merger(
    const MergerConfig& config, const ParameterLayout& layout, const caffe::SolverParameter& solver,
    std::vector<float> weights, Version first_version, std::shared_ptr<ParameterStore> store,
    std::function<Result<std::unique_ptr<Backend>>()> make_backend,
    const caffe::SolverState* state) {
  SPEEDO_ASSERT(store != nullptr);
  SPEEDO_ASSERT(weights.size() == static_cast<std::size_t>(layout.element_count()));
  SPEEDO_ASSERT(config.factor != 0.0F);
  const std::vector<float> start =
      config.update == UpdateKind::kGradientOnly ? weights : std::vector<float>();
  auto merger = std::make_unique<ThreadedMerger>(std::make_unique<MergerEngine>(
      config, layout, std::move(weights), first_version, std::move(store)));
  if (config.update == UpdateKind::kGradientOnly) {
    SPEEDO_TRY(merger->make_rule(
        [&] { return MergerRule::create(solver, layout, start, make_backend, state); }));
  }
  return std::unique_ptr<Merger>(std::move(merger));
}

}  // namespace speedo
