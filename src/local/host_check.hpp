#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/hosts_file.hpp"
#include "local/remote_host.hpp"

namespace speedo {

// Whether a host can work.
struct HostState {
  std::string version;  // that its program says: "speedo 1.2.3"
  std::string problem;  // why it cannot; empty: it can
  std::string remedy;   // what to do then
};

// Asks all hosts at once for the version of their program, which must be `version`; within some
// 20 s. Forks: call it before the process has threads. Errors: kCannotWrite, kUnavailable, kUsage
// if there is no ssh.
Result<std::vector<HostState>> check_hosts(const RemoteShell& shell, const std::vector<Host>& hosts,
                                           const std::string& version);

}  // namespace speedo
