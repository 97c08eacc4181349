// What a descriptor takes late, or never, and who waits for it.

#include "base/patient_output.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <speedo/base/file.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

// A pipe, or sockets: what is written to `in` comes out of `out`.
struct Ends {
  int out = -1, in = -1;
  explicit Ends(bool are_sockets = false) {
    std::array<int, 2> both{};
    REQUIRE((are_sockets ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, both.data())
                         : ::pipe2(both.data(), O_CLOEXEC)) == 0);
    out = both[0];
    in = both[1];
  }
  ~Ends() {
    close_out();
    ::close(in);
  }
  void close_out() {
    if (out >= 0) ::close(out);
    out = -1;
  }
  std::string read_some() const {
    std::string text(65536, '\0');
    const ssize_t got = ::read(out, text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
};

std::string line_of(int number) {
  return "line " + std::to_string(number) + std::string(200, '.') + "\n";
}

std::string lines_to(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += line_of(i);
  return all;
}

constexpr int kMoreThanPipe = 2000;

TEST_CASE("a thread that never waits leaves what nobody takes for later, in order") {
  const bool are_sockets = GENERATE(false, true);
  Ends ends(are_sockets);
  PatientOutput output(ends.in);
  std::thread writer([&] {
    PatientOutput::never_wait_on_this_thread();
    for (int i = 0; i < kMoreThanPipe; ++i) output.write(line_of(i));
  });
  writer.join();  // nobody has read anything
  std::string read;
  std::atomic<bool> is_all_out = false;
  std::thread flusher([&] { is_all_out = output.flush(); });
  while (read.size() < lines_to(kMoreThanPipe).size()) read += ends.read_some();
  flusher.join();
  CHECK(is_all_out);
  CHECK((read == lines_to(kMoreThanPipe)));
}

TEST_CASE("others wait for a slow reader, and lose nothing") {
  Ends ends;
  PatientOutput output(ends.in, std::chrono::minutes(10));
  const int count = 4 * static_cast<int>(PatientOutput::kKeptMax / line_of(0).size());
  std::thread writer([&] {
    for (int i = 0; i < count; ++i) output.write(line_of(i));
  });
  std::string read;
  while (read.size() < lines_to(count).size()) read += ends.read_some();
  writer.join();
  CHECK((read == lines_to(count)));
}

TEST_CASE("nobody waits for one that takes nothing, and what is left out is counted") {
  Ends ends;
  PatientOutput output(ends.in, std::chrono::milliseconds(50));
  const int count = 2 * static_cast<int>(PatientOutput::kKeptMax / line_of(0).size());
  for (int i = 0; i < count; ++i) output.write(line_of(i));  // the first that waits gives it up
  CHECK(!output.flush());
  std::string read;
  std::thread flusher([&] {
    while (!output.flush()) std::this_thread::yield();
    while (!output.flush()) std::this_thread::yield();  // with the number of those left out
    output.write("after\n");
    while (!output.flush()) std::this_thread::yield();
  });
  while (!read.ends_with("after\n")) read += ends.read_some();
  flusher.join();
  const std::size_t note = read.find("lines are left out here");
  REQUIRE(note != std::string::npos);
  const std::size_t begin = read.rfind('\n', note) + 1;
  const auto kept = static_cast<int>(std::count(read.begin(), read.begin() + begin, '\n'));
  CHECK((read.substr(0, begin) == lines_to(kept)));
  CHECK(read.substr(begin) ==
        "(" + std::to_string(count - kept) +
            " lines are left out here: nobody took them)\nafter\n");
}

TEST_CASE("what is left out at the end is counted as well, and there is room as soon as it is") {
  Ends ends;
  PatientOutput output(ends.in, std::chrono::milliseconds(50));
  const int count = 2 * static_cast<int>(PatientOutput::kKeptMax / line_of(0).size());
  for (int i = 0; i < count; ++i) output.write(line_of(i));
  std::string read;
  while (read.find("left out here: nobody took them)\n") == std::string::npos) {
    output.flush_within(std::chrono::milliseconds(0));
    read += ends.read_some();
  }
  output.write("last\n");
  CHECK(ends.read_some() == "last\n");
}

TEST_CASE("a text longer than all that is kept goes to who takes it") {
  const TempDir folder;
  const int file = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  PatientOutput output(file);
  std::string text(2 * PatientOutput::kKeptMax, '.');
  text.back() = '\n';
  output.write(text);
  ::close(file);
  CHECK((read_file(folder / "log").value() == text));
}

TEST_CASE("a reader that is gone costs lines, and no time") {
  ::signal(SIGPIPE, SIG_IGN);
  Ends ends;
  PatientOutput output(ends.in);
  ends.close_out();
  for (int i = 0; i < kMoreThanPipe; ++i) output.write(line_of(i));
  CHECK(output.flush());
  ::signal(SIGPIPE, SIG_DFL);
}

TEST_CASE("a live line stands below the last line, and the newest counts") {
  Ends ends;
  PatientOutput output(ends.in);
  output.write("a\n");
  output.show_live_line("10 %");
  output.write("b\n");
  output.show_live_line("20 %");
  output.show_live_line("");
  output.write("c\n");
  const std::string erase = "\r\x1b[K";
  CHECK(ends.read_some() == "a\n10 %" + erase + "b\n10 %" + erase + "20 %" + erase + "c\n");
}

TEST_CASE("a descriptor that becomes another file is followed") {
  const TempDir folder;
  Ends first;
  PatientOutput output(first.in);
  output.write("a\n");
  const int file = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::dup2(file, first.in);
  output.write("b\n");
  ::close(file);
  CHECK(first.read_some() == "a\n");
  CHECK(read_file(folder / "log").value() == "b\n");
}

}  // namespace
}  // namespace speedo
