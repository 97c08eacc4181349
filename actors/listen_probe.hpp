#pragma once

#include <cstdint>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// Why a port could not be opened, which CAF does not tell: tries it once more with the system's own
// calls. Errors: kUnavailable; kRefused for a port that this user may not open.
Error why_not_listening(const std::string& bind, std::uint16_t port);

}  // namespace speedo
