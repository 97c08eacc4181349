#pragma once

#include <functional>

namespace speedo {

// What becomes of an exception that nothing catches: this program throws none, but its libraries
// and the standard one do. The process ends with one line that says what it was and on which
// thread, and with exit code 70, not with SIGABRT.

// For every thread, those of libraries included. To be called first in main(). The process ends at
// once, without destructors: the state is not known any more.
void set_up_uncaught();

// Runs `body`, the rest of main(), and returns its exit code; an exception out of it is reported as
// `program`'s, after the destructors on its way.
int run_program(const char* program, const std::function<int()>& body);

}  // namespace speedo
