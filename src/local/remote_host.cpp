#include "local/remote_host.hpp"

#include <map>
#include <utility>

namespace speedo {
namespace {

// Its arguments: folder, program, arguments.
constexpr const char* kRunThere = R"(folder=$1; shift
[ -z "$folder" ] || cd -- "$folder" || exit 73
exec "$@")";

// Its arguments: folder, user of Redis, program, arguments; its lines of input: Redis' password,
// the cluster's token. What follows is the end of input, when the connection ends: then the workers
// are asked to leave. Only the workers have the password, in their environment, and the token, in a
// pipe. What that machine's own environment says of Redis is of another one.
constexpr const char* kWorkThere = R"(unset SPEEDO_REDIS_USERNAME SPEEDO_REDIS_PASSWORD
unset SPEEDO_REDIS_PASSWORD_FILE
IFS= read -r password
IFS= read -r token
folder=$1 user=$2; shift 2
[ -z "$folder" ] || cd -- "$folder" || exit 73
[ -z "$user" ] || export SPEEDO_REDIS_USERNAME="$user"
exec 3<&0 </dev/null 4<<END
$token
END
if [ -n "$password" ]; then
  SPEEDO_REDIS_PASSWORD=$password "$@" --token-file=/dev/fd/4 3<&- &
else
  "$@" --token-file=/dev/fd/4 3<&- &
fi
workers=$!
{ cat <&3; kill -TERM "$workers"; } >/dev/null 2>&1 &
watcher=$!
exec 3<&- 4<&-
wait "$workers"
code=$?
kill "$watcher" 2>/dev/null
exit "$code")";

// ssh gives its words to a shell that may be any; sh reads the script.
ChildCommand remote(const RemoteShell& shell, const Host& host, const char* script,
                    const std::vector<std::string>& arguments) {
  ChildCommand command;
  command.arguments = {shell.program};
  for (const std::string& option : shell.options) command.arguments.push_back(option);
  for (const char* option : {"-T", "-oBatchMode=yes", "-oConnectTimeout=10",
                             "-oServerAliveInterval=5", "-oServerAliveCountMax=3"}) {
    command.arguments.emplace_back(option);
  }
  if (host.port != 0) command.arguments.push_back("-p" + std::to_string(host.port));
  command.arguments.push_back(host.name);
  std::string line = "exec sh -c " + shell_quoted(script) + " speedo-launch";
  for (const std::string& argument : arguments) line += " " + shell_quoted(argument);
  command.arguments.push_back(std::move(line));
  return command;
}

std::string with_port(const std::string& name, const Host& host) {
  return host.port == 0 ? name : name + ":" + std::to_string(host.port);
}

}  // namespace

std::string label(const Host& host) {
  return with_port(host.name.substr(host.name.rfind('@') + 1), host);
}

std::vector<std::string> log_names(const std::vector<Host>& hosts) {
  std::map<std::string, int> uses;
  for (const Host& host : hosts) ++uses[label(host)];
  std::vector<std::string> names;
  for (const Host& host : hosts) {
    const std::string name = label(host);
    names.push_back(uses[name] == 1 ? name : with_port(host.name, host));
  }
  return names;
}

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

ChildCommand remote_version(const RemoteShell& shell, const Host& host) {
  return remote_program(shell, host, {host.program, "--version"});
}

ChildCommand remote_program(const RemoteShell& shell, const Host& host,
                            const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {host.folder};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return remote(shell, host, kRunThere, arguments);
}

ChildCommand remote_workers(const RemoteShell& shell, const Host& host,
                            const std::vector<std::string>& flags,
                            const RemoteSecrets& secrets) {
  std::vector<std::string> words = {host.folder, secrets.redis.user, host.program,
                                    "--host=" + label(host),
                                    "--workers=" + std::to_string(host.workers)};
  if (host.threads != 0) words.push_back("--threads=" + std::to_string(host.threads));
  words.insert(words.end(), flags.begin(), flags.end());
  ChildCommand command = remote(shell, host, kWorkThere, words);
  command.input = {secrets.redis.password, secrets.token};
  return command;
}

}  // namespace speedo
