#include <speedo/base/clock.hpp>

namespace speedo {

namespace {

class SteadyClock : public Clock {
 public:
  Instant now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

}  // namespace

const Clock& steady_clock() {
  static const SteadyClock clock;
  return clock;
}

double seconds_since(Instant start) {
  return std::chrono::duration<double>(steady_clock().now() - start).count();
}

}  // namespace speedo
