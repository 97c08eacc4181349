#pragma once

// toml++ as this program uses it. Its assertions are off in every build: it takes for granted that
// the name of a table begins as a key does before it has looked, and without them it comes to an
// error of its own, with line and column.
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
