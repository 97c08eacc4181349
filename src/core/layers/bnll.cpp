#include "core/layers/bnll.hpp"

namespace speedo {

Result<UnaryOp> BnllLayer::read_op() const { return UnaryOp{UnaryKind::kBnll}; }

}  // namespace speedo
