#pragma once

#include <memory>

#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"
#include "gpu/library/workspace.hpp"

namespace speedo::gpu {

BackwardReads lrn_reads(const LrnShape& shape);

// `queue` and `workspace`, in which it reserves what its backward pass needs, outlive it.
std::unique_ptr<Lrn> make_lrn(Queue& queue, Workspace& workspace, const LrnShape& shape);

}  // namespace speedo::gpu
