#pragma once

namespace speedo {

// What a process says when the machine gives it no more memory or threads: one line that names the
// limit, and exit code 75.

// Makes the lines while there is memory, and the end of a failing `new`.
void set_up_out_of_room(const char* program);

// Ends the process if the exception being handled says that there is no more memory or no more
// threads; else returns. Requires: an exception is being handled.
void end_if_out_of_room();

}  // namespace speedo
