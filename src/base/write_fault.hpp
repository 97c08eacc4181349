#pragma once

#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// Why a file is not written, by errno, and what helps where that does not say it.
std::string write_fault(int reason);

// Whether what could not be written may be some day, as on a disk that is full: not a file whose
// name is too long, or that would be larger than files may be. By the words of write_fault().
bool waiting_may_help(const Error& error);

}  // namespace speedo
