#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

#include <speedo/train/master_session.hpp>

namespace speedo {

// The commands that answer one event, in the order in which the shell carries them out.
class SessionCommands {
 public:
  void add(MasterCommand command) { commands_.push_back(std::move(command)); }
  template <class... Args>
  void note(bool warning, fmt::format_string<Args...> format, Args&&... args) {
    add(master_command::Note{warning, clip_text(fmt::format(format, std::forward<Args>(args)...))});
  }
  void refuse(PeerId peer, ErrorCode code, const std::string& reason) {
    add(master_command::SendRefused{peer, {static_cast<std::uint32_t>(code), clip_text(reason)}});
  }
  MasterCommands take() { return std::exchange(commands_, {}); }

 private:
  MasterCommands commands_;
};

}  // namespace speedo
