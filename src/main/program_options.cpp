#include "main/program_options.hpp"

#include "main/parser_access.hpp"
#include "main/remote_access.hpp"

namespace speedo {

Result<Parsed> read_program_options(const std::vector<std::string>& arguments,
                                    OptionValues& values) {
  SPEEDO_ASSIGN(const Parsed parsed, read_options(arguments, values));
  if (parsed != Parsed::kRun) return parsed;
  const auto has = [&](const char* name) { return find_option(name, values.program()) != nullptr; };
  if (has("data-cache")) allow_remote_files(values);
  if (has("parser-process")) employ_parsers(values);
  return parsed;
}

}  // namespace speedo
