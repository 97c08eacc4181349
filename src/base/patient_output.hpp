#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace speedo {

// Lines of all threads for a descriptor that may take nothing for a while: a terminal that is
// stopped, a pipe whose reader hangs. What it does not take is kept and comes with what is written
// next, in order. Who writes waits for it, so that a slow reader slows writers down, but not for
// one that takes nothing at all for kPatience: then nobody waits until it takes something again. Of
// more than kKeptMax bytes, lines are left out, and their number stands in their place.
//
// On a terminal a live line may stand below all others.
//
// Assumes: regular files take what is written. A terminal or pipe that cannot be opened anew, as
// another user's, may hold up the one thread that writes to it; no other one, and none that never
// waits. Thread safety: all methods from any thread.
class PatientOutput {
 public:
  static constexpr std::chrono::milliseconds kPatience{2000};
  static constexpr std::chrono::milliseconds kForEver = std::chrono::hours(24 * 365);
  static constexpr std::size_t kKeptMax = std::size_t{1} << 20;

  // Not owned; may become another file later (dup2).
  explicit PatientOutput(int descriptor, std::chrono::milliseconds patience = kPatience)
      : descriptor_(descriptor), patience_(patience) {}
  ~PatientOutput();
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

  // A line with its end, or several, of any length. Whoever reads no more, or a full disk, costs
  // lines in silence.
  void write(std::string_view line);
  // Of a terminal; "": none. The last one counts; one that is not taken at once is shown with the
  // next line or live line.
  void show_live_line(std::string text);
  // Waits, as write() does, until all is taken. False: something is left.
  bool flush() { return flush_within(kForEver); }
  // No longer than this, however slowly it is taken.
  bool flush_within(std::chrono::milliseconds limit);

  // The thread that calls this never waits in write(), whatever is written.
  static void never_wait_on_this_thread();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void append(std::string_view line);
  void keep(std::string_view text);
  void note_left_out();
  void erase_live_line();
  void draw_live_line();
  bool wait_until(std::uint64_t end, std::chrono::milliseconds limit, Lock& lock);
  void take(Lock& lock);
  bool take_some(Lock& lock);
  ssize_t write_some(std::string_view bytes, Lock& lock);
  void follow();

  const int descriptor_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::string kept_;
  std::uint64_t appended_ = 0, taken_ = 0;  // bytes; the difference is kept
  std::uint64_t left_out_ = 0;              // lines since the last one that was kept
  bool is_stuck_ = false;
  bool is_writing_ = false;  // a thread, without mutex_, to a file that may block
  std::string live_line_;
  bool is_drawn_ = false;  // a live line stands on the terminal, or will when all is taken
  // The descriptor's file: opened anew where that gives one that does not block, else itself.
  int file_ = -1;
  bool is_socket_ = false, may_block_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// This process's, as log and live line share it. Never destroyed: threads log to the end.
PatientOutput& standard_error();

}  // namespace speedo
