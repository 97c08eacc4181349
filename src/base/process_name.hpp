#pragma once

#include <string>
#include <string_view>

namespace speedo {

// This machine's name; "localhost" if it has none.
std::string host_name();

// A name for this process that no other has or ever had, where /proc tells; elsewhere one for
// people alone: "host/pid", for people, then what tells it from others of that number: when it
// began, in which container, since which start of the machine; or "0 ?".
std::string process_name();

// True if the process of that name, whatever follows it, ran on this machine, where this one sees
// its processes, and is no more. False if that cannot be known from here.
bool is_known_dead(std::string_view process_name);

// The part for people.
std::string_view readable(std::string_view process_name);

}  // namespace speedo
