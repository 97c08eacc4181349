#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// A machine that workers are started on by ssh.
struct Host {
  std::string name;               // as ssh takes it, with the user: "user@node1"
  std::uint16_t port = 0;         // of its sshd; 0: ssh's own choice
  std::uint64_t workers = 1;      // in one process there
  int threads = 0;                // of all of them together; 0: the machine's processors
  std::string folder = {};          // to work in; empty: the user's home
  std::string program = "speedo-worker";  // found in the PATH there if it has no slash
  bool operator==(const Host&) const = default;
};

// One host a line, as MPI's hosts files have it, and comments behind '#':
//
//   [user@]host[:port] [workers=N] [threads=N] [folder=PATH] [program=PATH]
//
// "slots" is another name for "workers", "directory" for "folder". A value with blanks stands in
// double quotes. A host stands there once. Errors: kConfig, naming file and line; those of
// read_file().
Result<std::vector<Host>> read_hosts_file(const std::string& path);

}  // namespace speedo
