#include "cli/out_of_room.hpp"

#include <array>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory_limit.hpp"
#include "cli/exit_code.hpp"

namespace speedo {

namespace {

using Line = std::array<char, 512>;
Line out_of_memory_line{}, out_of_threads_line{};

void put(Line& line, const std::string& text) { text.copy(line.data(), line.size() - 1); }

// Of its address space, in bytes.
std::optional<std::int64_t> address_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

// What memory this process may have.
std::string limit_text() {
  if (const auto limit = address_limit()) {
    return "its address space is limited to " + format_bytes(*limit) + " (ulimit -v)";
  }
  const MemoryLimit limit = memory_limit();
  return limit.what + " is " + format_bytes(limit.bytes);
}

// Nothing may be allocated here.
[[noreturn]] void end_with(const Line& line) { end_at_once(line.data(), ErrorCode::kFull); }

[[noreturn]] void out_of_memory() { end_with(out_of_memory_line); }

bool is_want_of_room(const std::error_code& code) {
  return code == std::errc::resource_unavailable_try_again || code == std::errc::not_enough_memory;
}

}  // namespace

void set_up_out_of_room(const char* program) {
  const std::string who = fmt::format("{} (process {})", program, ::getpid());
  const std::string limit = limit_text();
  put(out_of_memory_line,
      who + ": out of memory: " + limit + "; the net, its batch or the data are too large\n");
  put(out_of_threads_line, who + ": the system gives no more threads: " + limit +
                               ", and so may be processes (ulimit -u); use fewer --threads or "
                               "raise the limit\n");
  std::set_new_handler(out_of_memory);
  // By default a thread's heap takes 64 MiB of address space, and leaves no stack to the threads
  // after it.
  if (address_limit()) ::mallopt(M_ARENA_MAX, 1);
}

void end_if_out_of_room() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::system_error& error) {
    if (is_want_of_room(error.code())) end_with(out_of_threads_line);
  } catch (...) {
    return;
  }
}

}  // namespace speedo
