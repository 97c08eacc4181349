#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Whether writing the file or folder `whole_target`, a whole_path(), takes `input` away: it is the
// target, lies in it, or is a database's folder of which the target is a file with data. A URI is
// never taken away.
bool takes_away(const std::filesystem::path& whole_target, const std::string& input);

// The kUsage of a target that takes `input` away. `named`: how the target was asked for, such as
// "--output a.dot".
Error replaced_input_error(const std::string& named, const std::string& input);

// What is read is not replaced, whatever --force says: replaced_input_error() of the first that
// `target` takes away. Inputs may be several names with commas between them; empty ones are none.
Result<void> check_target(const std::filesystem::path& target,
                          const std::vector<std::string>& inputs, const std::string& named);

}  // namespace speedo
