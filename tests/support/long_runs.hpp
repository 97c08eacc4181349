#pragma once

#include <cstdlib>

namespace speedo::test {

// Whether SPEEDO_LONG is set: tests may take hours.
inline bool is_long() { return std::getenv("SPEEDO_LONG") != nullptr; }

}  // namespace speedo::test
