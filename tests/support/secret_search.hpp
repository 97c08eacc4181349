#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace speedo::test {

// Where a text that should be secret is to be seen from outside a process. Each returns the places
// where it found one of `texts`; a test that finds nothing shows with a text that is there that it
// looked.
using Places = std::vector<std::string>;
using Texts = std::vector<std::string>;

// /proc/PID/cmdline and environ of every process of this machine.
Places in_process_lists(const Texts& texts);

// The files in a folder and below it, but those named `except`.
Places in_files(const std::filesystem::path& folder, const Texts& texts,
                const std::vector<std::string>& except = {});

// The memory of a process, which must be ours to trace.
enum class MemoryPart {
  kDumped,    // what a core dump would contain
  kUndumped,  // what it would leave out (madvise)
};
Places in_memory(pid_t process, MemoryPart part, const Texts& texts);

Places in_text(const std::string& name, const std::string& content, const Texts& texts);

}  // namespace speedo::test
