// What this user may not read is refused with the same error wherever a file is named.

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include <speedo/base/file.hpp>

#include "cli/group_file.hpp"
#include "cli/hybrid.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/open_source.hpp"
#include "measure/simulate/simulate_plan_file.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

template <class T>
bool is_refused(const Result<T>& result) {
  return !result && result.error().code == ErrorCode::kRefused;
}

// The first of those that read the file without being refused, from 1; 0: none. Asked in a process
// of a user who has no rights.
int first_not_refused(const std::string& file) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(100);
    const std::array all = {is_refused(read_file(file)),        is_refused(read_group_file(file)),
                            is_refused(read_hybrid_file(file)), is_refused(read_cluster(file)),
                            is_refused(Hdf5Reader::open(file)), is_refused(open_source(file, {}))};
    const auto place = std::find(all.begin(), all.end(), false);
    ::_exit(place == all.end() ? 0 : static_cast<int>(place - all.begin()) + 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("A file that may not be read, or not be looked for, is refused wherever it is named") {
  const TempDir folder;
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::mkdir((folder / "closed").c_str(), 0755) == 0);
  for (const char* name : {"own", "closed/file"}) std::ofstream(folder / name) << "x";
  REQUIRE(::chmod((folder / "own").c_str(), 0) == 0);
  REQUIRE(::chmod((folder / "closed").c_str(), 0) == 0);
  CHECK(first_not_refused((folder / "own").string()) == 0);
  CHECK(first_not_refused((folder / "closed/file").string()) == 0);
  REQUIRE(::chmod((folder / "closed").c_str(), 0755) == 0);
}

}  // namespace
}  // namespace speedo
