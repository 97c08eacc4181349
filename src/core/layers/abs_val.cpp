#include "core/layers/abs_val.hpp"

namespace speedo {

Result<UnaryOp> AbsValLayer::read_op() const { return UnaryOp{UnaryKind::kAbs}; }

}  // namespace speedo
