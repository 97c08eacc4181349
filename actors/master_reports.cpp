#include "actors/master_reports.hpp"

#include <algorithm>
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

void MasterReports::hurry(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    hurries_ = is_telling_;
  }
  hurried_.notify_one();
  thread_.post(std::move(done));
}

void MasterReports::flush_within(std::chrono::milliseconds time) {
  const auto done = std::make_shared<std::promise<void>>();
  hurry([done] { done->set_value(); });
  done->get_future().wait_for(time);
}

Result<void> MasterReports::flush() {
  std::promise<void> done;
  hurry([&done] { done.set_value(); });
  done.get_future().get();
  const std::lock_guard lock(mutex_);
  if (broken_) return *broken_;
  return {};
}

bool MasterReports::are_broken() const {
  const std::lock_guard lock(mutex_);
  return broken_.has_value();
}

void MasterReports::post(Report report) {
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return;
    reports_.push_back(std::move(report));
    waiting_ += 1;
    if (std::exchange(is_telling_, true)) return;
  }
  thread_.post([this] { tell_all(); });
}

void MasterReports::tell_all() {
  for (auto reports = next(); !reports.empty(); reports = next()) {
    if (!std::ranges::all_of(reports, [this](const Report& each) { return tell(each); })) return;
    rest();
  }
}

// Those that wait; none: the next one calls tell_all() again.
std::vector<MasterReports::Report> MasterReports::next() {
  const std::lock_guard lock(mutex_);
  if (reports_.empty() && newest_) {
    waiting_ += 1;
    reports_.emplace_back([this, progress = *std::exchange(newest_, std::nullopt)] {
      hooks_.on_progress(progress, nullptr);
    });
  }
  if (reports_.empty()) is_telling_ = hurries_ = false;
  return std::exchange(reports_, {});
}

bool MasterReports::tell(const Report& report) {
  auto told = guarded("the master's reports broke off", [&]() -> Result<void> {
    report();
    return {};
  });
  const std::lock_guard lock(mutex_);
  waiting_ -= 1;
  if (!told) broken_ = std::move(told.error());
  return told.has_value();
}

void MasterReports::rest() {
  std::unique_lock lock(mutex_);
  hurried_.wait_for(lock, kRest, [this] { return hurries_; });
}

}  // namespace speedo
