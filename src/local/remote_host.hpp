#pragma once

#include <string>
#include <vector>

#include <speedo/store/redis_store.hpp>

#include "cli/hosts_file.hpp"
#include "local/children.hpp"

namespace speedo {

// How other machines are reached.
struct RemoteShell {
  std::string program = "ssh";
  std::vector<std::string> options;  // in front of ours
};

// What ssh ends with when it is ssh that fails.
inline constexpr int kSshFailed = 255;

// "node1", "node1:2222": without the user.
std::string label(const Host& host);

// A name of each for its log: the label, with the user where several have the same.
std::vector<std::string> log_names(const std::vector<Host>& hosts);

// `text` as one word of any shell.
std::string shell_quoted(const std::string& text);

// Prints the version of the program that workers are to be of, from the folder where they work.
ChildCommand remote_version(const RemoteShell& shell, const Host& host);

// Runs the words, a program first, in the folder where the host works; its output is ours.
ChildCommand remote_program(const RemoteShell& shell, const Host& host,
                            const std::vector<std::string>& words);

// What workers there are given, through ssh's standard input: Redis' password into the environment
// of the workers alone, the token into a pipe that they read.
struct RemoteSecrets {
  RedisCredentials redis;
  Secret token;  // of the master
};

// Starts workers there. They end when this end of the connection does, whatever ends it.
// `flags`: of speedo-worker, but for those that the host has.
ChildCommand remote_workers(const RemoteShell& shell, const Host& host,
                            const std::vector<std::string>& flags,
                            const RemoteSecrets& secrets);

}  // namespace speedo
