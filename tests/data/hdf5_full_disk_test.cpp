// HDF5 files that the disk has no room for: an error each, whatever part of them fails, and a
// process that ends as it means to.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/hdf5/hdf5_file.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

constexpr int kWritten = 0, kRefused = 73, kOtherError = 1;

// Names enough that what describes them takes several blocks of the file.
Result<void> write_weights(const fs::path& path) {
  SPEEDO_ASSIGN(Hdf5Writer file, Hdf5Writer::create(path));
  const std::int64_t dims[] = {30};
  for (int layer = 0; layer < 40; ++layer) {
    const std::string group = "/data/layer" + std::to_string(layer);
    SPEEDO_TRY(file.add_floats(group + "/0", dims, std::vector<float>(30, 1.0F)));
  }
  SPEEDO_TRY(file.add_string("/learned_net", "a.caffemodel.h5"));
  return file.commit();
}

Result<void> write_rows(const fs::path& path) {
  SPEEDO_ASSIGN(Hdf5Writer file, Hdf5Writer::create(path));
  const std::int64_t dims[] = {2000};
  for (int batch = 0; batch < 5; ++batch) {
    SPEEDO_TRY(file.add_rows("data", dims, std::vector<float>(30 * 2000, 1.0F)));
    SPEEDO_TRY(file.add_rows("label", {}, std::vector<float>(30, 1.0F)));
  }
  return file.commit();
}

using WriteFile = Result<void> (*)(const fs::path&);

void limit_file_size(rlim_t bytes) {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

// Writes where no file grows beyond so many bytes, and once more where there is room; ends as a
// program does.
[[noreturn]] void write_and_exit(WriteFile write, const TempDir& folder, rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  limit_file_size(bytes);
  const auto written = write(folder / "small.h5");
  limit_file_size(RLIM_INFINITY);
  if (!write(folder / "later.h5")) std::exit(kOtherError);
  if (written) std::exit(kWritten);
  std::exit(written.error().code == ErrorCode::kCannotWrite ? kRefused : kOtherError);
}

int status_of_writing(WriteFile write, const TempDir& folder, rlim_t bytes) {
  std::fflush(nullptr);
  std::cout.flush();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) write_and_exit(write, folder, bytes);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

void check_full_disks(WriteFile write) {
  const TempDir whole;
  REQUIRE(write(whole / "f.h5"));
  const std::uintmax_t size = fs::file_size(whole / "f.h5");
  for (const std::uintmax_t limit :
       {std::uintmax_t{0}, std::uintmax_t{1}, std::uintmax_t{96}, std::uintmax_t{700},
        std::uintmax_t{2048}, size / 4, size / 2, size - 2048, size - 1, size}) {
    INFO(limit << " of " << size << " bytes");
    const TempDir folder;
    const int status = status_of_writing(write, folder, limit);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == (limit < size ? kRefused : kWritten));
    CHECK(fs::exists(folder / "small.h5") == (limit == size));
    CHECK(fs::file_size(folder / "later.h5") == size);
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == (limit < size ? 1 : 2));
  }
}

TEST_CASE("HDF5: weights that a full disk cuts are an error, and the process ends well") {
  check_full_disks(write_weights);
}

TEST_CASE("HDF5: rows that a full disk cuts are an error, and the process ends well") {
  check_full_disks(write_rows);
}

TEST_CASE("HDF5: what is not written takes no descriptor with it") {
  const TempDir folder;
  const auto open_files = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
  REQUIRE(write_weights(folder / "f.h5"));
  const auto before = open_files();
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  limit_file_size(700);
  const auto failed = write_weights(folder / "g.h5");
  limit_file_size(limit.rlim_cur);
  std::signal(SIGXFSZ, handler);
  check_error(failed, ErrorCode::kCannotWrite, "File too large");
  CHECK(open_files() == before);
}

}  // namespace
}  // namespace speedo
