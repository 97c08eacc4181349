#include "core/layers/sigmoid.hpp"

namespace speedo {

Result<UnaryOp> SigmoidLayer::read_op() const { return UnaryOp{UnaryKind::kSigmoid}; }

}  // namespace speedo
