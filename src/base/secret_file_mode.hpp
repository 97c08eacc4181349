#pragma once

#include <sys/stat.h>

namespace speedo {

// Whether a file that holds a secret (a password, a token, a private key) can be read by everybody,
// or changed by another user. A group may read it: managers of secrets, as Kubernetes', give it to
// a group. What is no regular file, as a pipe, is for who has opened it.
inline bool is_open_to_others(const struct stat& status) {
  return S_ISREG(status.st_mode) && (status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0;
}

}  // namespace speedo
