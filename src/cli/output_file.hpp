#pragma once

#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// Whether the folder of a file that is to be written much later takes files; "" is none. Error:
// kCannotWrite.
Result<void> check_output_folder(const std::string& file);

}  // namespace speedo
