#pragma once

// What the tests of the session's parts share.

#include <string>

#include "train/master_session_driver.hpp"
#include "train/session/contribution.hpp"
#include "train/session/session_commands.hpp"

namespace speedo {

// The commands so far, without notes; they are taken.
inline std::string take_text(SessionCommands& out) {
  std::string text;
  for (const MasterCommand& command : out.take()) {
    const std::string one = std::visit([](const auto& c) { return to_text(c); }, command);
    if (!one.empty()) text += (text.empty() ? "" : "; ") + one;
  }
  return text;
}

// The notes so far, one a line; the commands are taken.
inline std::string take_notes(SessionCommands& out) {
  std::string text;
  for (const MasterCommand& command : out.take()) {
    const auto* note = std::get_if<master_command::Note>(&command);
    if (note != nullptr) text += note->text + "\n";
  }
  return text;
}

inline Contribution contribution_of(std::uint64_t worker, std::uint64_t run) {
  return {{worker}, {run}, 1.0F, {0}, 10, {run, 1}, 1.0F};
}

}  // namespace speedo
