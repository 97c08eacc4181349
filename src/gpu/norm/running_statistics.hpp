#pragma once

#include <speedo/backend/backend.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// Backend::add_to_running(), queued as one kernel.
void add_to_running(Queue& queue, const RunningStatistics& of);

}  // namespace speedo::gpu
