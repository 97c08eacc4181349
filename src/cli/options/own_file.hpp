#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// A file that a program finds where it runs, and that nobody named: it counts as what its user says
// only if nobody else can have written it.

// Whether that is so of a file with this status. Its owner is the user or root. It may be written
// by the user's own group, which umask 002 allows where each user has one; by no other.
bool is_own(const struct stat& status, uid_t user, gid_t group);

// The whole file, if it is this process's user's, and so is the link, where it is one. Errors:
// kRefused for another's, with what takes and what leaves it; those of reading.
Result<std::string> read_own_file(const std::string& path, std::size_t bytes_max);

}  // namespace speedo
