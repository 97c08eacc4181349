#include "actors/master_reports.hpp"

#include <future>
#include <memory>
#include <utility>

#include "base/guarded.hpp"
#include "base/log.hpp"

namespace speedo {

MasterReports::MasterReports(const MasterHooks& hooks)
    : hooks_(hooks), thread_(real_platform(), "reports") {}

void MasterReports::progress(const MasterProgress& progress,
                             const std::vector<TestScores>* scores) {
  if (!hooks_.on_progress) return;
  if (scores != nullptr) {
    return post([this, progress, scores = *scores] { hooks_.on_progress(progress, &scores); });
  }
  {
    const std::lock_guard lock(mutex_);
    if (newest_ || waiting_ >= kWaitingMax) {
      newest_ = progress;
      return;
    }
  }
  post([this, progress] { hooks_.on_progress(progress, nullptr); });
}

void MasterReports::status(JobStatus status) {
  if (!hooks_.on_status) return;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(status_, std::move(status))) return;
  }
  post([this] {
    std::unique_lock lock(mutex_);
    JobStatus newest = std::move(*std::exchange(status_, std::nullopt));
    lock.unlock();
    hooks_.on_status(std::move(newest));
  });
}

void MasterReports::note(bool is_warning, std::string text) {
  post([is_warning, text = std::move(text)] {
    if (is_warning) {
      SPEEDO_WARN("{}", text);
    } else {
      SPEEDO_INFO("{}", text);
    }
  });
}

void MasterReports::flush_within(std::chrono::milliseconds time) {
  const auto done = std::make_shared<std::promise<void>>();
  thread_.post([done] { done->set_value(); });
  done->get_future().wait_for(time);
}

Result<void> MasterReports::flush() {
  std::promise<void> done;
  thread_.post([&done] { done.set_value(); });
  done.get_future().get();
  const std::lock_guard lock(mutex_);
  if (broken_) return *broken_;
  return {};
}

bool MasterReports::are_broken() const {
  const std::lock_guard lock(mutex_);
  return broken_.has_value();
}

void MasterReports::break_off(Error error) {
  const std::lock_guard lock(mutex_);
  broken_ = std::move(error);
}

void MasterReports::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ += 1;
  }
  thread_.post([this, work = std::move(work)] {
    if (are_broken()) return;
    auto told = guarded("the master's reports broke off", [&]() -> Result<void> {
      work();
      tell_newest();
      return {};
    });
    if (!told) break_off(std::move(told.error()));
  });
}

void MasterReports::tell_newest() {
  std::unique_lock lock(mutex_);
  waiting_ -= 1;
  if (waiting_ > 0 || !newest_) return;
  const MasterProgress progress = *std::exchange(newest_, std::nullopt);
  lock.unlock();
  hooks_.on_progress(progress, nullptr);
}

}  // namespace speedo
