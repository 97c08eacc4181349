#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// What happened when, as a file in Chrome's Trace Event Format (an array of JSON objects), which
// chrome://tracing and ui.perfetto.dev show. Times are of the wall clock, in microseconds, so that
// the files of several machines fit together as well as their clocks do.
//
// Several processes of a machine may write to one file at a time: the first one begins it anew, the
// last one ends it. A file whose disk is full, or that has grown by kTraceBytesMax, is left as it
// is, with a warning; the program goes on.
class Trace {
 public:
  // From now on spans are written, until it is destroyed. An empty file: nothing is.
  // Error: kCannotWrite. Requires: there is no other Trace.
  static Result<std::unique_ptr<Trace>> start(const std::string& file, const std::string& process);
  virtual ~Trace() = default;
};

inline constexpr std::uint64_t kTraceBytesMax = std::uint64_t{256} << 20U;

// Whether there is a trace; costs one load.
bool is_tracing();

// One span on the thread that calls. `name`: a literal. Not while there is no trace. Any thread.
void trace_span(const char* name, Instant start, Instant end);

// The time of a scope.
class TraceSpan {
 public:
  explicit TraceSpan(const char* name) : name_(is_tracing() ? name : nullptr) {
    if (name_ != nullptr) start_ = steady_clock().now();
  }
  ~TraceSpan() {
    if (name_ != nullptr) trace_span(name_, start_, steady_clock().now());
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  const char* const name_;
  Instant start_{0};
};

}  // namespace speedo
