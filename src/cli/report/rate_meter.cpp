#include "cli/report/rate_meter.hpp"

namespace speedo {

namespace {

constexpr Instant kRateWindow = std::chrono::seconds(2);

}  // namespace

void RateMeter::start(Instant now, std::uint64_t iterations, std::uint64_t images) {
  started_ = true;
  first_ = older_ = newer_ = last_ = Mark{now, iterations, images};
}

void RateMeter::update(Instant now, std::uint64_t iterations, std::uint64_t images) {
  last_ = Mark{now, iterations, images};
  if (now - newer_.at < kRateWindow) return;
  older_ = newer_;
  newer_ = last_;
}

double RateMeter::seconds() const {
  return std::chrono::duration<double>(last_.at - first_.at).count();
}

RateMeter::Rates RateMeter::between(const Mark& from, const Mark& to) {
  const double seconds = std::chrono::duration<double>(to.at - from.at).count();
  if (seconds <= 0.0) return {};
  return {static_cast<double>(to.iterations - from.iterations) / seconds,
          static_cast<double>(to.images - from.images) / seconds};
}

}  // namespace speedo
