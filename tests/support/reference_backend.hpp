#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>

namespace speedo {

// Every operation as its definition says, in plain loops with double sums: what the fast backends
// are compared with, and never itself optimised. `preferred`: the layout it asks nets to have.
// `allocations`: if not null, counts the calls of allocate(), and outlives the backend.
std::unique_ptr<Backend> make_reference_backend(LayoutKind preferred = LayoutKind::kPlain,
                                                int* allocations = nullptr);

}  // namespace speedo
