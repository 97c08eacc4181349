#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace speedo {

// What kind of failure it was. The kind decides whether a retry can help and the exit code.
enum class ErrorCode {
  kUsage,          // bad flag or contradictory flags
  kConfig,         // bad solver, net or configuration
  kData,           // bad, missing or corrupt input data
  kNotFound,       // the thing asked for does not exist
  kCorrupt,        // stored bytes do not match their checksum, size or type
  kUnavailable,    // the other side is absent or went away; a retry can help
  kTimeout,        // no answer in time; a retry can help
  kRefused,        // authentication or permission refused
  kMismatch,       // other protocol version, other model, other job
  kCannotWrite,    // a file or folder that must be written cannot be
  kFull,           // the store or the disk has no room left
  kNotFinite,      // training diverged: NaN or infinity
  kUnsupported,    // known, but not built yet
  kInternal,       // a fault of this program
  kSuperseded,     // another master has taken the job over: this one must not write any more
};

// A failure as a value. `message` names the thing, the place and, where one exists, the remedy, in
// one line that can be shown to a user.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

// The two kinds that reading flags and files makes most.
inline Error usage_error(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }
inline Error config_error(std::string message) { return {ErrorCode::kConfig, std::move(message)}; }

// True if trying again later can succeed.
constexpr bool is_transient(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout;
}

// A value or an Error: the subset of std::expected that this project needs.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // Requires: has_value().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Requires: !has_value().
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }

  // Requires: !has_value().
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

  // States why a failure may be passed over.
  void ignore(const char* /*why*/) const {}

 private:
  std::optional<Error> error_;
};

}  // namespace speedo

#define SPEEDO_CONCAT_INNER(a, b) a##b
#define SPEEDO_CONCAT(a, b) SPEEDO_CONCAT_INNER(a, b)

// SPEEDO_TRY(expression): returns the error of a Result<void> expression from this function.
#define SPEEDO_TRY(expression)                                     \
  do {                                                             \
    if (auto speedo_result = (expression); !speedo_result) {       \
      return std::move(speedo_result).error();                     \
    }                                                              \
  } while (false)

// SPEEDO_ASSIGN(declaration, expression): declares a variable from a Result<T>, or returns its
// error.
#define SPEEDO_ASSIGN(declaration, expression)                             \
  auto SPEEDO_CONCAT(speedo_result_, __LINE__) = (expression);             \
  if (!SPEEDO_CONCAT(speedo_result_, __LINE__)) {                          \
    return std::move(SPEEDO_CONCAT(speedo_result_, __LINE__)).error();     \
  }                                                                        \
  declaration = std::move(SPEEDO_CONCAT(speedo_result_, __LINE__)).value()
