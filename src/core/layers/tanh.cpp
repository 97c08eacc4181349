#include "core/layers/tanh.hpp"

namespace speedo {

Result<UnaryOp> TanhLayer::read_op() const { return UnaryOp{UnaryKind::kTanh}; }

}  // namespace speedo
