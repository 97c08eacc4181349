#pragma once

#include <string>

namespace speedo {

// A configuration file with every option in it, each behind a '#': conf/speedo.toml.
std::string config_template();

}  // namespace speedo
