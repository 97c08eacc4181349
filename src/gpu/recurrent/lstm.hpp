#pragma once

#include <speedo/backend/lstm_step.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// As in Backend, queued.
void lstm_forward(Queue& queue, const LstmShape& shape, const LstmForward& step);
void lstm_backward(Queue& queue, const LstmShape& shape, const LstmBackward& step);

}  // namespace speedo::gpu
