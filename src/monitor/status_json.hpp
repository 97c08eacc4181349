#pragma once

#include <string>

#include <speedo/train/job_status.hpp>

namespace speedo {

// The same as one JSON object on one line; null where nothing is known. Times in seconds.
std::string status_json(const JobStatus& status);

}  // namespace speedo
