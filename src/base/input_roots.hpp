#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"

namespace speedo {

// Where a process may read whose nets come from others. What read_file(), resolve_path() and the
// readers of data open goes through here.

// While it lives nothing else is read in this process. Thread safety: made and destroyed while no
// other thread reads.
class InputRoots {
 public:
  // Of the folders, with what they hold; of addresses ("s3://bucket/part") these and what is below,
  // whose copies come to lie somewhere in `copies`. The other files there are not read: they may
  // come from other addresses.
  struct Limits {
    std::vector<std::filesystem::path> folders;
    std::vector<std::string> addresses = {};
    std::filesystem::path copies = {};
  };
  // Errors: as open_root(). Requires: there is none, and a folder.
  static Result<std::unique_ptr<InputRoots>> confine(const Limits& limits);
  ~InputRoots();
  InputRoots(const InputRoots&) = delete;
  InputRoots& operator=(const InputRoots&) = delete;

  struct Open;  // what is confined to, opened

 private:
  explicit InputRoots(std::unique_ptr<Open> open);
  const std::unique_ptr<Open> open_;
};

bool are_inputs_confined();

// For reading: O_NONBLOCK, so that a named pipe is not waited for. Errors: kNotFound, kRefused
// (no permission), kData; also kData outside of the roots, naming both.
Result<Descriptor> open_input(const std::filesystem::path& path);
// Whether open_input() would find it in the roots: that error alone.
Result<void> check_input(const std::filesystem::path& path);
// Of an address, which has a scheme: kData unless nothing is confined or it is one of those.
Result<void> check_input_address(const std::string& address);
// From here on the copy of such an address is read, by the path it has. Errors: as open_root(), of
// the folder with the copies; kNotFound.
Result<void> admit_copy(const std::filesystem::path& copy);

// `path`, which is relative, in the first root that has it; empty: none has.
std::filesystem::path find_in_roots(const std::filesystem::path& path);
// For messages about what is not found: ", below --data-root '/data'"; empty if nothing is
// confined.
std::string also_looked_in();

}  // namespace speedo
