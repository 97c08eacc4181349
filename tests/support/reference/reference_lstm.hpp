#pragma once

#include <speedo/backend/lstm_step.hpp>

namespace speedo {

// Backend::lstm_forward() and lstm_backward() in plain loops of doubles.
void reference_lstm_forward(const LstmShape& shape, const LstmForward& step);
void reference_lstm_backward(const LstmShape& shape, const LstmBackward& step);

}  // namespace speedo
