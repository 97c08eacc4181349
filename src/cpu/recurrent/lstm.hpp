#pragma once

#include <speedo/backend/lstm_step.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Contracts as in Backend, divided over the pool's threads by streams.
void lstm_forward(ThreadPool& pool, const LstmShape& shape, const LstmForward& step);
void lstm_backward(ThreadPool& pool, const LstmShape& shape, const LstmBackward& step);

}  // namespace speedo::cpu
