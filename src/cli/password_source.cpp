#include "cli/password_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/patient_read.hpp"
#include "base/secret_file_mode.hpp"
#include "cli/signals.hpp"

namespace speedo {

namespace {

Error cannot_read(const std::string& name, int reason) {
  if (reason == ECANCELED) {
    return Error{ErrorCode::kUnavailable,
                 stop_requested().value_or("stopped") + " while " + name + " was waited for"};
  }
  const bool refused = reason == EACCES || reason == EPERM;
  const ErrorCode code = refused                                 ? ErrorCode::kRefused
                         : reason == ENOENT || reason == ENOTDIR ? ErrorCode::kNotFound
                                                                 : ErrorCode::kConfig;
  return Error{code, name + " cannot be read: " + std::strerror(reason) +
                         (refused ? ": make its owner the user that runs this (chmod 600)" : "")};
}

// Fills `memory` from the file until it is full or the file ends. Returns the bytes read.
Result<std::size_t> read_into(int descriptor, std::span<char> memory, const std::string& name) {
  const ssize_t size =
      read_patiently(descriptor, memory, [] { return stop_requested().has_value(); });
  if (size < 0) return cannot_read(name, errno);
  return static_cast<std::size_t>(size);
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < ' ' && c != '\t') || byte == 0x7F;
}

Result<void> check_line(std::string_view text, const std::string& source) {
  if (std::none_of(text.begin(), text.end(), is_control)) return {};
  return Error{ErrorCode::kConfig, source +
                                       " is not one line of plain text: write the password "
                                       "and nothing else, at most with a newline at its end"};
}

Error too_long(const std::string& source) {
  return Error{ErrorCode::kConfig, source + " is longer than " +
                                       std::to_string(Secret::kBytesMax - 2) +
                                       " bytes: is this a password?"};
}

std::string password_file_name(const std::filesystem::path& path) {
  return "the password file '" + path.string() + "'";
}

Result<Secret> password_in(const Descriptor& file, const std::string& name) {
  return Secret::filled_by([&](std::span<char> memory) -> Result<std::size_t> {
    SPEEDO_ASSIGN(const std::size_t size, read_into(file.get(), memory, name));
    std::string_view text(memory.data(), size);
    if (text.ends_with('\n')) text.remove_suffix(1);
    if (text.size() < size && text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) return Error{ErrorCode::kConfig, name + " is empty"};
    if (size == memory.size() || text.size() > Secret::kBytesMax - 2) return too_long(name);
    SPEEDO_TRY(check_line(text, name));
    return text.size();
  });
}

// A pipe gives its password once.
Result<Secret> read_again(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return cannot_read(password_file_name(path), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return cannot_read(password_file_name(path), errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kConfig, password_file_name(path) + " is no file"};
  }
  return password_in(file, password_file_name(path));
}

}  // namespace

Result<Secret> checked_password(std::string_view text, const std::string& source) {
  if (text.size() > Secret::kBytesMax - 2) return too_long(source);
  SPEEDO_TRY(check_line(text, source));
  return Secret(text);
}

Result<Secret> read_password_file(const std::filesystem::path& path) {
  const std::string name = password_file_name(path);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return cannot_read(name, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return cannot_read(name, errno);
  if (is_open_to_others(status)) {
    SPEEDO_WARN("{} can be read or changed by other users: chmod 600 {}", name, path.string());
  }
  return password_in(file, name);
}

Result<RedisCredentials> redis_credentials(const std::string& password_file,
                                           const ProcessSecrets& secrets) {
  const RedisCredentials& environment = secrets.environment;
  const RedisCredentials& address = secrets.address;
  if (!address.user.empty() && !environment.user.empty() && address.user != environment.user) {
    return usage_error("--redis names the user '" + address.user + "', and " + kUsernameVariable +
                       " says '" + environment.user +
                       "', whose password may be the one that is given: leave one of them out");
  }
  RedisCredentials credentials;
  credentials.user = address.user.empty() ? environment.user : address.user;
  if (!address.password.empty()) {
    SPEEDO_WARN(
        "--redis had a password in it, which other users could see until it was taken out: "
        "give --redis-password-file FILE or {}",
        kPasswordVariable);
  }
  if (!password_file.empty()) {
    SPEEDO_ASSIGN(credentials.password, read_password_file(password_file));
    credentials.renew = [path = password_file] { return read_again(path); };
    SPEEDO_INFO("Redis' password comes from '{}'", password_file);
  } else if (!environment.password.empty()) {
    credentials.password = environment.password;
    SPEEDO_INFO("Redis' password comes from {}", kPasswordVariable);
  } else {
    credentials.password = address.password;
  }
  return credentials;
}

}  // namespace speedo
