#pragma once

#include <string>

// A test case that cannot run here (no such processor, no such fixtures) is neither passed nor
// failed: it says so, and is counted as skipped.

namespace speedo::test {

// Prints the running test case's name and the reason, and counts the case as skipped.
void note_skip(const std::string& reason);

}  // namespace speedo::test

// Ends a test case here as skipped. What can run in any case belongs into a case of its own.
#define SPEEDO_SKIP(reason)            \
  do {                                 \
    ::speedo::test::note_skip(reason); \
    return;                            \
  } while (false)
