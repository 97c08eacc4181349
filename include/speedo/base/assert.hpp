#pragma once

namespace speedo {

// Prints what was expected and where to standard error, then aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace speedo

// A broken invariant of this program, never bad input. On in every build.
#define SPEEDO_ASSERT(condition)                                        \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::speedo::assertion_failed(#condition, __FILE__, __LINE__);       \
    }                                                                   \
  } while (false)
