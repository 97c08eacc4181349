#pragma once

#include <string>

#include <speedo/train/job_status.hpp>

namespace speedo {

// Standard output as the place of a status that is shown again and again: on a terminal each one
// takes the place of the one before, else they follow each other with a blank line between them.
// Thread safety: one thread.
class StatusScreen {
 public:
  StatusScreen();

  // `note`: a line below it; may be empty.
  void show(const JobStatus& status, const std::string& note);
  bool is_terminal() const { return is_terminal_; }

 private:
  bool is_terminal_;
  bool is_first_ = true;
};

// Once, where nothing follows.
void print_status(const JobStatus& status);

}  // namespace speedo
