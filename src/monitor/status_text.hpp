#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/train/job_status.hpp>

namespace speedo {

// How a job stands, for people: what it has done, then a row for each worker, then why workers are
// gone. Lines end with '\n' and are at most `width` columns long; columns that matter least are
// left out where there is little room, the phases of the workers' time first.
std::string status_text(const JobStatus& status, int width, bool colour);

// Where the time of each worker went, a line for each; of the first few where there are many.
std::vector<std::string> phase_lines(const JobStatus& status);

// "12.3 MiB", of bytes or bytes a second.
std::string short_bytes(double bytes);

// Of one worker's time: "12 %", and "-" while nothing is known.
std::string percent_of(std::uint64_t part, std::uint64_t whole);

// Seconds to the last iteration at the speed of late; nothing while that is unknown.
std::optional<double> seconds_left(const JobStatus& status);

}  // namespace speedo
