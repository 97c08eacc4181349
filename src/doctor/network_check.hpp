#pragma once

#include <cstdint>
#include <string>

#include "base/name_lookup.hpp"
#include "doctor/finding.hpp"

namespace speedo {

// "host": what this machine's own name, or the one that workers are to be told, leads to for
// others. A name that resolves to the loopback, as Debian's 127.0.1.1, sends each worker to itself.
// `announced`: empty for the machine's name, which is a warning where the other is a problem.
Finding check_host(const std::string& announced, const LookUp& look_up = ask_system);

// "port": whether this process may listen there; 0: any port.
Finding check_port(const std::string& bind, std::uint16_t port);

}  // namespace speedo
