#include "local/temporary_folder.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "local/guardian.hpp"
#include "support/catch.hpp"
#include "support/child_processes.hpp"
#include "support/log_capture.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "speedo-folder";

// As long as it lives temporary files lie in a folder of its own.
class OwnTemporaryFiles {
 public:
  OwnTemporaryFiles() {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  ~OwnTemporaryFiles() {
    if (before_.empty()) {
      ::unsetenv("TMPDIR");
    } else {
      ::setenv("TMPDIR", before_.c_str(), 1);
    }
  }
  OwnTemporaryFiles(const OwnTemporaryFiles&) = delete;
  OwnTemporaryFiles& operator=(const OwnTemporaryFiles&) = delete;

  std::vector<fs::path> made() const {
    return {fs::directory_iterator(folder_.path()), fs::directory_iterator()};
  }

 private:
  TempDir folder_;
  std::string before_;
};

template <class Done>
bool comes_about(Done done) {
  for (int i = 0; i < 500; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// The folder of a program that has a Guardian, and the Guardian, which has begun its work.
struct Owner {
  pid_t pid = ::fork(), guardian = 0;
  Owner() {
    if (pid == 0) {
      const fs::path folder = make_temporary_folder(kName).value();
      std::ofstream(folder / "file") << "content";
      const Guardian made = Guardian::create(folder).value();
      std::ofstream(folder / "ready");
      while (true) ::pause();
    }
  }
  bool is_ready(const OwnTemporaryFiles& files) {
    return comes_about([&] {
      const auto found = test::children_of(pid, "speedo-guardian");
      if (found.size() == 1) guardian = found.front();
      return found.size() == 1 && files.made().size() == 1 &&
             fs::exists(files.made().front() / "ready");
    });
  }
};

TEST_CASE("A folder whose program and guardian were killed is removed by the next start") {
  const OwnTemporaryFiles files;
  Owner owner;
  REQUIRE(owner.is_ready(files));
  const fs::path left = files.made().front();

  // Neither while its program lives, nor by a program that makes others.
  const fs::path beside = make_temporary_folder(kName).value();
  CHECK(fs::exists(left / "file"));
  ::kill(owner.guardian, SIGKILL);
  ::kill(owner.pid, SIGKILL);
  ::waitpid(owner.pid, nullptr, 0);
  const fs::path other = make_temporary_folder("speedo").value();
  CHECK(fs::exists(left / "file"));

  // A process that is killed lets go of its lock a moment later.
  fs::path next;
  CHECK(comes_about([&] {
    next = make_temporary_folder(kName).value();
    return !fs::exists(left);
  }));
  CHECK(fs::exists(beside));
  CHECK(fs::exists(other));
  CHECK(fs::exists(next));
}

// From here on this process can lock no file, as on file systems that have no locks.
bool take_locks_away(int reason) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_flock, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(reason)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program{std::size(steps), steps};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_CASE("Where no file can be locked a folder is made all the same, and no start removes it") {
  const OwnTemporaryFiles files;
  const int reason = GENERATE(ENOSYS, EPERM, ENOLCK, EOPNOTSUPP);
  const pid_t maker = ::fork();
  if (maker == 0) {
    if (!take_locks_away(reason)) ::_exit(2);
    for (int i = 0; i < 2; ++i) {
      if (!make_temporary_folder(kName)) ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(maker, &status, 0);
  CHECK(status == 0);
  const auto made = files.made();
  CHECK(made.size() == 2);
  make_temporary_folder(kName).value();
  for (const fs::path& folder : made) CHECK(fs::exists(folder));
}

TEST_CASE("A folder that its own user may not open is refused with the reason, and none is left") {
  const OwnTemporaryFiles files;
  ::chmod(fs::temp_directory_path().c_str(), 0777);
  // Root may open everything, so it becomes nobody for this one.
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::seteuid(kNobody) == 0);
  const mode_t before = ::umask(0777);
  const auto refused = make_temporary_folder(kName);
  ::umask(before);
  if (root) REQUIRE(::seteuid(0) == 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCannotWrite);
  CHECK(refused.error().message.ends_with("Permission denied"));
  CHECK(files.made().empty());
}

TEST_CASE("A folder in use is itself locked, so that who clears up after a time leaves it") {
  const OwnTemporaryFiles files;
  const fs::path made = make_temporary_folder(kName).value();
  const Descriptor folder(::open(made.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(folder.get() >= 0);
  CHECK(::flock(folder.get(), LOCK_EX | LOCK_NB) != 0);
  CHECK(errno == EWOULDBLOCK);
}

TEST_CASE("A folder that is kept for the user stays when others are made") {
  const OwnTemporaryFiles files;
  const fs::path kept = make_temporary_folder(kName).value();
  Guardian::create(kept).value().keep_folder();
  REQUIRE(fs::exists(kept));
  CHECK_FALSE(fs::exists(kept / kFolderInUse));
  make_temporary_folder(kName).value();
  CHECK(fs::exists(kept));
}

TEST_CASE("A folder's path is whole, whatever TMPDIR is relative to") {
  const OwnTemporaryFiles files;
  ::setenv("TMPDIR", ".", 1);
  const fs::path made = make_temporary_folder(kName).value();
  CHECK(made.is_absolute());
  CHECK(made.parent_path() == fs::current_path());
  fs::remove_all(made);
}

TEST_CASE("Where TMPDIR names no folder, one is made in /tmp, and that is said") {
  const OwnTemporaryFiles files;
  const fs::path file = fs::temp_directory_path() / "file";
  std::ofstream(file) << "content";
  for (const std::string& named : {std::string("/no/such/folder"), std::string(), file.string()}) {
    const test::LogCapture log;
    ::setenv("TMPDIR", named.c_str(), 1);
    const auto made = make_temporary_folder(kName);
    INFO(named << (made ? "" : made.error().message));
    REQUIRE(made);
    CHECK(made->parent_path() == "/tmp");
    CHECK(log.has("/tmp is used"));
    fs::remove_all(*made);
    ::setenv("TMPDIR", file.parent_path().c_str(), 1);
  }
}

TEST_CASE("The folder of a guardian that was killed is removed in its place, or kept") {
  const OwnTemporaryFiles files;
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  const bool keep = GENERATE(false, true);
  const fs::path folder = make_temporary_folder(kName).value();
  {
    Guardian guardian = Guardian::create(folder).value();
    std::vector<pid_t> found;
    REQUIRE(comes_about([&] {
      found = test::children_of(::getpid(), "speedo-guardian");
      return found.size() == 1;
    }));
    ::kill(found.front(), SIGKILL);
    if (keep) guardian.keep_folder();
  }
  ::signal(SIGPIPE, before);
  CHECK(fs::exists(folder) == keep);
  CHECK_FALSE(fs::exists(folder / kFolderInUse));
}

}  // namespace
}  // namespace speedo
