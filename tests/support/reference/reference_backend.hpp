#pragma once

#include <cstdint>
#include <memory>

#include <speedo/backend/backend.hpp>

namespace speedo {

// Every operation as its definition says, in plain loops with double sums: what the fast backends
// are compared with, and never itself optimised. `preferred`: the layout it asks nets to have.
// `allocations`: if not null, counts the calls of allocate(), and outlives the backend.
// `rounding_seed`: if not 0, each value of a softmax or of a function like exp and each mean of a
// BatchNorm is off by up to a unit in its last place, drawn from the seed, as sums in another order
// and other approximations leave it. Near 1, about a constant, and in values that are all but equal
// to their mean nothing else shows what that does to what follows, as it is the float's last bits
// that say how far from there the value is.
std::unique_ptr<Backend> make_reference_backend(LayoutKind preferred = LayoutKind::kPlain,
                                                int* allocations = nullptr,
                                                std::uint64_t rounding_seed = 0);

}  // namespace speedo
