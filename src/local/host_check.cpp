#include "local/host_check.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>

#include "cli/signals.hpp"
#include "local/children.hpp"
#include "local/local_cluster.hpp"
#include "local/temporary_folder.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kHostPatience{20};  // ssh's own for a connection is 10 s
constexpr std::chrono::milliseconds kHostPoll{100};

// What a shell ends with.
constexpr int kNoProgram = 127;
constexpr int kNotExecutable = 126;
constexpr int kNoFolder = 73;

HostState failed(const Host& host, int code, const std::string& said) {
  const std::string quote = said.empty() ? "" : ": " + said;
  if (code == kSshFailed) {
    return {"", "ssh does not reach it" + quote,
            "try `ssh -oBatchMode=yes " + host.name + " true`: name, port, key and host key"};
  }
  if (code == kNoProgram || code == kNotExecutable) {
    return {"", fmt::format("'{}' cannot be started there{}", host.program, quote),
            "install SpeeDO there, or name its path: program=PATH in the hosts file"};
  }
  if (code == kNoFolder) {
    return {"", fmt::format("folder '{}' cannot be entered{}", host.folder, quote),
            "make it there, or change folder=PATH in the hosts file"};
  }
  return {"", fmt::format("'{} --version' ended there with exit code {}{}", host.program, code,
                          quote),
          "run it there by hand"};
}

HostState judged(const Host& host, const ChildEnd& end, const fs::path& log,
                 const std::string& version) {
  const std::string said = last_line(log);
  if (end.exit_code != 0) return failed(host, end.exit_code, said);
  if (said == version) return {said, "", ""};
  return {said, fmt::format("its speedo-worker is '{}', this is '{}'", said, version),
          "install the same version of SpeeDO on all machines"};
}

}  // namespace

Result<std::vector<HostState>> check_hosts(const RemoteShell& shell, const std::vector<Host>& hosts,
                                           const std::string& version) {
  SPEEDO_ASSIGN(const fs::path folder, make_temporary_folder("speedo-hosts"));
  SPEEDO_ASSIGN(Guardian guardian, Guardian::create(folder));
  Children children(std::move(guardian));
  std::vector<HostState> states(hosts.size());
  std::map<pid_t, std::size_t> asked;
  const auto log_of = [&](std::size_t i) { return folder / std::to_string(i); };
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    ChildCommand command = remote_version(shell, hosts[i]);
    command.output = log_of(i);
    const auto pid = children.start(command);
    if (!pid) {
      const bool is_missing = pid.error().code == ErrorCode::kNotFound;
      return Error{is_missing ? ErrorCode::kUsage : pid.error().code,
                   "--ssh: " + pid.error().message};
    }
    asked[*pid] = i;
    states[i] = {"", fmt::format("no answer in {} s", kHostPatience.count()),
                 "try `ssh -oBatchMode=yes " + hosts[i].name + " true`"};
  }
  const Instant deadline = steady_clock().now() + kHostPatience;
  while (!asked.empty() && steady_clock().now() < deadline && !stop_requested()) {
    const auto end = children.wait(kHostPoll);
    if (!end) continue;
    const auto found = asked.find(end->pid);
    if (found == asked.end()) continue;
    const std::size_t i = found->second;
    states[i] = judged(hosts[i], *end, log_of(i), version);
    asked.erase(found);
  }
  return states;
}

}  // namespace speedo
