// HDF5 files: the library is known to fault on damaged ones, so each is read in a process of its
// own, with little time. libFuzzer, which has to see what is reached, reads them in its own, and
// run.sh tells it to go on after a crash.
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <speedo/base/assert.hpp>

#include "data/hdf5/hdf5_file.hpp"
#include "data/hdf5/hdf5_library.hpp"
#include "data/model_files.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "support/temp_dir.hpp"

#ifdef SPEEDO_COVERAGE
// Of GCC's runtime, which would write what was counted at an orderly end.
extern "C" void __gcov_dump();
#endif

namespace speedo::fuzz {
namespace {

constexpr unsigned kSeconds = 10;

void read_datasets(const std::filesystem::path& path) {
  const auto file = Hdf5Reader::open(path);
  if (!file) return;
  const auto children = file->children("/");
  if (!children) return;
  for (const std::string& each : *children) {
    static_cast<void>(file->has(each));
    static_cast<void>(file->read_floats(each));
    static_cast<void>(file->read_integer(each));
    static_cast<void>(file->read_string(each));
  }
}

// As a helper process does.
void read_descriptor(const std::filesystem::path& path, std::size_t bytes) {
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  SPEEDO_ASSERT(descriptor.get() >= 0);
  const auto opened = Hdf5Library::open_descriptor(std::move(descriptor), bytes, "fuzz");
  if (!opened) return;
  for (const char* name : {"data", "label", "text"}) {
    if ((*opened)->check_size(name)) static_cast<void>((*opened)->dims(name));
    static_cast<void>((*opened)->read_string(name));
  }
}

void read_all(const std::filesystem::path& path, std::size_t bytes) {
  read_datasets(path);
  static_cast<void>(read_model(path));
  static_cast<void>(read_solver_state(path));
  read_descriptor(path, bytes);
}

#ifndef SPEEDO_LIBFUZZER
// How a process that reads the file ends.
int status_of_reader(const std::filesystem::path& path, std::size_t bytes) {
  const pid_t reader = ::fork();
  SPEEDO_ASSERT(reader >= 0);
  if (reader == 0) {
    ::alarm(kSeconds);
    read_all(path, bytes);
#ifdef SPEEDO_COVERAGE
    __gcov_dump();
#endif
    ::_exit(0);
  }
  int status = 0;
  SPEEDO_ASSERT(::waitpid(reader, &status, 0) == reader);
  return status;
}
#endif

// The library opens no file that has no name.
SPEEDO_FUZZ_TARGET(hdf5)(Bytes bytes) {
  static const TempDir folder;
  const std::filesystem::path path = folder / "fuzz.h5";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text_of(bytes);
#ifdef SPEEDO_LIBFUZZER
  read_all(path, bytes.size());
#else
  // A file whose reader ends does not belong into the corpus.
  SPEEDO_ASSERT(status_of_reader(path, bytes.size()) == 0);
#endif
}

}  // namespace
}  // namespace speedo::fuzz
