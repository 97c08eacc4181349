#include "cli/grace_period.hpp"

#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "base/patient_output.hpp"
#include "cli/exit_code.hpp"
#include "cli/signals.hpp"

namespace speedo {

GracePeriod::GracePeriod(std::chrono::seconds period, std::string program)
    : period_(period), program_(std::move(program)), thread_([this] { watch(); }) {}

GracePeriod::~GracePeriod() {
  pause_.end();
  thread_.join();
}

void GracePeriod::watch() {
  while (!stop_requested()) {
    if (!pause_.wait(kTickInterval)) return;
  }
  if (!pause_.wait(period_)) return;
  const Error error{ErrorCode::kTimeout,
                    fmt::format("did not end within {} s (--grace-period) after {}; ends now",
                                period_.count(), *stop_requested())};
  PatientOutput::never_wait_on_this_thread();
  const int code = report_failure(program_.c_str(), error);
  standard_error().flush_within(PatientOutput::kPatience);
  ::_exit(code);
}

}  // namespace speedo
