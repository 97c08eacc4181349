#include <speedo/store/traffic_limit.hpp>

#include <cmath>

namespace speedo {

std::size_t TrafficLimit::take(Way way, std::size_t wanted, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  Bucket& from = bucket(way);
  const double waited = std::chrono::duration<double>(now - from.filled_at).count();
  from.tokens = std::min(burst_, from.tokens + std::max(0.0, waited) * rate_);
  from.filled_at = std::max(from.filled_at, now);
  const double all = static_cast<double>(wanted);
  if (from.tokens < std::min(all, kTakeMin)) return 0;
  const double taken = std::floor(std::min(all, from.tokens));
  from.tokens -= taken;
  return static_cast<std::size_t>(taken);
}

void TrafficLimit::give_back(Way way, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bucket(way).tokens += static_cast<double>(bytes);
}

TrafficLimit::Clock::time_point TrafficLimit::next(Way way, std::size_t wanted) {
  const std::lock_guard lock(mutex_);
  const Bucket& from = bucket(way);
  const double lacking = std::min(static_cast<double>(wanted), kTakeMin) - from.tokens;
  const std::chrono::duration<double> pause(std::max(0.0, lacking) / rate_);
  return from.filled_at + std::chrono::ceil<Clock::duration>(pause);
}

}  // namespace speedo
