// HDF5 files: the library is known to fault on damaged ones, so each is read in a process of its
// own, with little time. libFuzzer, which has to see what is reached, reads them in its own, and
// run.sh tells it to go on after a crash.
#include <filesystem>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <speedo/base/assert.hpp>

#include "data/hdf5/hdf5_file.hpp"
#include "data/model_files.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"

namespace speedo::fuzz {
namespace {

constexpr unsigned kSeconds = 10;

void read_datasets(const std::filesystem::path& path) {
  const auto file = Hdf5Reader::open(path);
  if (!file) return;
  for (const char* name : {"data", "label"}) {
    if (!file->is_dataset(name) || !file->dims(name) || !file->check_size(name)) continue;
    static_cast<void>(file->read_floats(name));
  }
  const auto children = file->children("/");
  if (!children) return;
  for (const std::string& each : *children) static_cast<void>(file->has(each));
}

void read_all(const std::filesystem::path& path) {
  read_datasets(path);
  static_cast<void>(read_model(path));
  static_cast<void>(read_solver_state(path));
}

#ifndef SPEEDO_LIBFUZZER
// How a process that reads the file ends.
int status_of_reader(const MemoryFile& file) {
  const pid_t reader = ::fork();
  SPEEDO_ASSERT(reader >= 0);
  if (reader == 0) {
    ::alarm(kSeconds);
    read_all(file.path());
    ::_exit(0);
  }
  int status = 0;
  SPEEDO_ASSERT(::waitpid(reader, &status, 0) == reader);
  return status;
}
#endif

SPEEDO_FUZZ_TARGET(hdf5)(Bytes bytes) {
  const MemoryFile file(bytes);
#ifdef SPEEDO_LIBFUZZER
  read_all(file.path());
#else
  // A file whose reader ends does not belong into the corpus.
  SPEEDO_ASSERT(status_of_reader(file) == 0);
#endif
}

}  // namespace
}  // namespace speedo::fuzz
