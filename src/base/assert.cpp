#include <speedo/base/assert.hpp>

#include <cstdio>
#include <cstdlib>

namespace speedo {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: expected %s\n", file, line, expression);
  std::abort();
}

}  // namespace speedo
