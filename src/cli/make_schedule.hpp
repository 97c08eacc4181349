#pragma once

#include <cstdint>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/train/schedule.hpp>

#include "cli/flags/schedule_flags.hpp"

namespace speedo {

// The schedule that flags stand for, with the defaults that its name brings for `workers` workers.
// Reads the group file. Errors: kUsage for flags that contradict each other or mean nothing
// together, with reason and remedy; kConfig for a bad group file.
Result<Schedule> make_schedule(const ScheduleFlags& flags, std::uint64_t workers, FlagScope scope);

// For people: "partial-sync, max advance 2; full updates of 1 mini-batch".
std::string describe(const Schedule& schedule);

}  // namespace speedo
