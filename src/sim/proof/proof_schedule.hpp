#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/train/schedule.hpp>

namespace speedo::sim {

// Several stages of different schedules.
inline constexpr const char* kHybridName = "hybrid";

// The stages of a job: schedules with the parameters, updates and weights that go with them.
std::vector<Schedule> draw_stages(Random& random, const std::string& name, std::uint64_t workers);
// Whether a job of these stages may cut its shards by speed.
bool shards_by_speed(const std::vector<Schedule>& stages);
std::string describe(const Schedule& schedule);

}  // namespace speedo::sim
