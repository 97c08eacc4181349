#pragma once

namespace speedo {

// To be called first in main(). Standard input, output and error are open afterwards, if only on
// /dev/null. What happens without room is said in main/out_of_room.hpp, what becomes of exceptions
// that nothing catches in main/uncaught.hpp.
void set_up_process(const char* program);

// To be called last in main(): `code`, or that of a result that could not be written to standard
// output, with a line that says so.
int end_process(const char* program, int code);

}  // namespace speedo
