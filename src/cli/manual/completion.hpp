#pragma once

#include <string>

namespace speedo {

// What completes the command lines of speedo, speedo-master and speedo-worker in a shell: commands,
// flags, and the words that a flag takes.
std::string bash_completion();
std::string zsh_completion();

}  // namespace speedo
