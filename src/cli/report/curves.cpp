#include "cli/report/curves.hpp"

#include <chrono>
#include <cmath>

#include "base/log.hpp"

namespace speedo {

namespace {

constexpr std::chrono::seconds kFlushPause{1};

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<std::unique_ptr<Curves>> Curves::create(const std::string& folder) {
  std::unique_ptr<EventFile> file;
  if (!folder.empty()) {
    SPEEDO_ASSIGN(file, EventFile::create(folder));
    SPEEDO_INFO("Curves for TensorBoard go to {}", file->path().string());
  }
  return std::unique_ptr<Curves>(new Curves(std::move(file)));
}

void Curves::go_on(std::uint64_t from) {
  const std::scoped_lock lock(mutex_);
  iteration_ = from_ = from;
}

void Curves::add(std::uint64_t iteration, std::vector<Scalar> scalars) {
  const std::scoped_lock lock(mutex_);
  if (file_ == nullptr || iteration_ == iteration) return;
  iteration_ = iteration;
  const Instant now = steady_clock().now();
  if (points_ >= kPointsAll && now - added_at_ < kPointPause) return;
  points_ += 1;
  added_at_ = now;
  for (Scalar& scalar : scalars) scalar.tag = "train/" + scalar.tag;
  write(iteration, std::move(scalars));
}

void Curves::add_tests(std::uint64_t iteration, const std::vector<TestScores>& tests) {
  const std::scoped_lock lock(mutex_);
  if (file_ == nullptr) return;
  std::vector<Scalar> scalars;
  for (std::size_t net = 0; net < tests.size(); ++net) {
    const std::string prefix = net == 0 ? "test/" : fmt::format("test{}/", net);
    for (const TestScores::Score& score : tests[net].scores) {
      scalars.push_back({prefix + score.name, score.value});
    }
  }
  write(iteration, std::move(scalars));
}

void Curves::write(std::uint64_t iteration, std::vector<Scalar> scalars) {
  std::erase_if(scalars, [](const Scalar& scalar) { return !std::isfinite(scalar.value); });
  if (scalars.empty()) return;
  const double seconds = seconds_since_1970();
  Result<void> written;
  if (from_) written = file_->add_start(static_cast<std::int64_t>(*from_ + 1), seconds);
  from_.reset();
  if (written) written = file_->add(static_cast<std::int64_t>(iteration), seconds, scalars);
  const Instant now = steady_clock().now();
  if (written && now - flushed_at_ >= kFlushPause) {
    flushed_at_ = now;
    written = file_->flush();
  }
  if (written) return;
  SPEEDO_WARN("{}; curves are not written any more", written.error().message);
  file_.reset();
}

}  // namespace speedo
