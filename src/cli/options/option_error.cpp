#include "cli/options/option_error.hpp"

#include <speedo/store/store_address.hpp>

namespace speedo {

namespace {

bool holds_password(const Option& option, const std::string& text) {
  return option.name == "redis" &&
         split_address(text).user_info.find(':') != std::string_view::npos;
}

}  // namespace

Result<void> check_value(const Option& option, const std::string& text, const std::string& origin,
                         ErrorCode code) {
  if (holds_password(option, text)) {
    return Error{code, origin +
                           ": a password does not belong here: give --redis-password-file, or "
                           "SPEEDO_REDIS_PASSWORD in the environment"};
  }
  if (const auto wrong = value_error(option, text)) return Error{code, origin + ": " + *wrong};
  return {};
}

}  // namespace speedo
