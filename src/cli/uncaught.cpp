#include "cli/uncaught.hpp"

#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>

#include <cxxabi.h>
#include <pthread.h>

#include "cli/exit_code.hpp"
#include "cli/out_of_room.hpp"

namespace speedo {

namespace {

// "std::length_error: vector::_M_default_append". Requires: an exception is being handled.
std::string describe_exception() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  int status = 0;
  char* readable =
      type == nullptr ? nullptr : abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string text = readable == nullptr ? "an exception of unknown type" : readable;
  std::free(readable);
  try {
    throw;
  } catch (const std::exception& exception) {
    return text + ": " + exception.what();
  } catch (...) {
    return text;
  }
}

Error unexpected(const std::string& what) {
  return {ErrorCode::kInternal, "internal error: " + what + "; please report it"};
}

// Runs on the thread that the exception ends. Streams and logs may be locked by it.
[[noreturn]] void end_by_exception() {
  if (std::current_exception()) end_if_out_of_room();
  char thread[16] = "?";
  ::pthread_getname_np(::pthread_self(), thread, sizeof(thread));
  const std::string what =
      std::current_exception() ? describe_exception() : std::string("std::terminate()");
  const Error error = unexpected(what + " on thread '" + thread + "'");
  end_at_once("speedo: " + error.message + "\n", error.code);
}

}  // namespace

void set_up_uncaught() { std::set_terminate(end_by_exception); }

int run_program(const char* program, const std::function<int()>& body) {
  try {
    return body();
  } catch (...) {
    end_if_out_of_room();
    return report_failure(program, unexpected(describe_exception()));
  }
}

}  // namespace speedo
