#include "main/remote_access.hpp"

#include <memory>

#include "cli/flags/remote_flags.hpp"
#include "cli/signals.hpp"
#include "remote/remote_file_cache.hpp"

namespace speedo {

std::filesystem::path remote_cache_folder(const OptionValues& values) {
  const RemoteFlags flags = remote_flags(values);
  return flags.cache.empty() ? default_cache_folder() : std::filesystem::path(flags.cache);
}

void allow_remote_files(const OptionValues& values) {
  static std::unique_ptr<RemoteFiles> files;  // the process's, to its end
  const RemoteFlags flags = remote_flags(values);
  RemoteTerms terms;
  terms.cache_bytes_max = flags.cache_bytes_max;
  terms.authority_file = flags.authority;
  terms.stopped = [] { return stop_requested().has_value(); };
  files = make_remote_file_cache(remote_cache_folder(values), terms);
  set_remote_files(files.get());
}

}  // namespace speedo
