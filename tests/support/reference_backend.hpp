#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>

namespace speedo {

// Every operation as its definition says, in plain loops with double sums: what the fast backends
// are compared with, and never itself optimised.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace speedo
