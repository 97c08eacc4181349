#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/flags/compute_flags.hpp"
#include "cli/flags/parser_flags.hpp"
#include "cli/flags/remote_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/options/option_values.hpp"
#include "data/convert.hpp"
#include "local/parted_work.hpp"
#include "local/remote_host.hpp"

namespace speedo {

struct FeatureFlags {
  NetFlags net;
  ComputeFlags compute;
  RemoteFlags remote;
  ParserFlags parser;
  std::vector<std::string> blobs, databases;
  std::int64_t batches = 0;
  ConvertOptions output;
  std::string backend, device, device_id;
  // Over several processes, of this machine or, with a hosts file, of others.
  std::int64_t workers = 1;
  std::string hosts;
  RemoteShell shell;
  // What one of these does.
  std::optional<WorkPart> part;
  int loop_parts = 0;
};

// Errors: kUsage for flags that contradict each other.
Result<FeatureFlags> feature_flags(const OptionValues& values);

// Extracts over the workers that the flags name. The databases are those of one process, byte for
// byte, whichever workers die. Errors: those of do_parted_work(); kCannotWrite.
Result<void> extract_in_parts(const FeatureFlags& flags);

}  // namespace speedo
