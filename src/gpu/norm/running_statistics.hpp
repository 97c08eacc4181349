#pragma once

#include <speedo/backend/backend.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// Backend::add_to_running() and read_running(), queued as one kernel each.
void add_to_running(Queue& queue, const RunningStatistics& of);
void read_running(Queue& queue, const RunningMeans& of);

}  // namespace speedo::gpu
