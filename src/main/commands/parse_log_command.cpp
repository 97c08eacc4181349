#include <cstdio>
#include <filesystem>
#include <string>

#include <speedo/base/file.hpp>

#include "cli/flags/caffe_flags.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"
#include "tools/log_tables.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

struct LogTableFlags {
  std::string log, folder, delimiter;
  bool verbose = false;
};

Result<void> write_table(const LogTableFlags& flags, const LogTable& table, const char* ending) {
  const fs::path path = fs::path(flags.folder) / (fs::path(flags.log).filename().string() + ending);
  if (table.rows.empty()) {
    if (flags.verbose) std::printf("Not writing %s; no lines to write\n", path.c_str());
    return {};
  }
  const std::string text = to_csv(table, flags.delimiter[0]);
  SPEEDO_TRY(write_file_atomically(path, text));
  if (flags.verbose) std::printf("Wrote %s\n", path.c_str());
  return {};
}

}  // namespace

Result<int> parse_log_command(const CommandLine& line) {
  OptionValues values(Program::kParseLog);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_program_options(from_gflags(line.arguments, values.program()), values));
  if (parsed == Parsed::kDone) return 0;
  LogTableFlags flags;
  values.get("log", flags.log);
  values.get("folder", flags.folder);
  values.get("delimiter", flags.delimiter);
  values.get("verbose", flags.verbose);
  if (flags.delimiter.size() != 1) return usage_error("--delimiter takes one character");

  SPEEDO_ASSIGN(const std::string text, read_file(flags.log));
  SPEEDO_ASSIGN(const LogTables tables,
                read_log_tables(text, flags.log, year_last_written(flags.log)));
  SPEEDO_TRY(write_table(flags, tables.train, ".train"));
  SPEEDO_TRY(write_table(flags, tables.test, ".test"));
  return 0;
}

}  // namespace speedo
