#pragma once

#include <string>

#include "base/log.hpp"

namespace speedo {

// Standard error as a person sees it: log lines scroll, and on a terminal one live line stays below
// them. Without a terminal (or with TERM=dumb) there is no live line and no control character.
// Thread safety: all functions from any thread, set_up_console() first.

// Sets up logging with Caffe's line form. `debug`: debugging lines too.
void set_up_console(bool debug, LogFormat format = LogFormat::kGlogWithYear);

bool has_live_line();
// NO_COLOR unset and a terminal that takes colours.
bool has_colour();
// Replaces the live line; does nothing without a terminal.
void show_live_line(const std::string& text);
// Removes it, before something else writes to the terminal.
void clear_live_line();
int terminal_width();

}  // namespace speedo
