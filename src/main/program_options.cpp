#include "main/program_options.hpp"

#include "main/remote_access.hpp"

namespace speedo {

Result<Parsed> read_program_options(const std::vector<std::string>& arguments,
                                    OptionValues& values) {
  SPEEDO_ASSIGN(const Parsed parsed, read_options(arguments, values));
  const bool reads_files = find_option("data-cache", values.program()) != nullptr;
  if (parsed == Parsed::kRun && reads_files) allow_remote_files(values);
  return parsed;
}

}  // namespace speedo
