#include "gate/token_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <speedo/base/file.hpp>

#include "base/descriptor.hpp"
#include "base/patient_read.hpp"
#include "base/secret_file_mode.hpp"
#include "gate/key_material.hpp"

namespace speedo {
namespace {

constexpr const char* kMakeOne = "make one with: speedo token create FILE";

Error token_error(ErrorCode code, const std::filesystem::path& path, const std::string& what) {
  return {code, fmt::format("the token file '{}' {}", path.string(), what)};
}

Error token_unreadable(const std::filesystem::path& path, int reason) {
  if (reason == ENOENT || reason == ENOTDIR) {
    return token_error(ErrorCode::kNotFound, path, fmt::format("is missing; {}", kMakeOne));
  }
  if (reason == ECANCELED) {
    return token_error(ErrorCode::kUnavailable, path, "was waited for until a signal came");
  }
  const bool refused = reason == EACCES || reason == EPERM;
  return token_error(refused ? ErrorCode::kRefused : ErrorCode::kConfig, path,
                     fmt::format("cannot be read: {}{}", std::strerror(reason),
                                 refused ? "; make its owner the user that runs this" : ""));
}

Result<void> check_token(std::string_view token, const std::filesystem::path& path) {
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) {
    return c > ' ' && static_cast<unsigned char>(c) < 0x7F;
  });
  if (!plain) {
    return token_error(ErrorCode::kConfig, path,
                       fmt::format("holds something else than a token; {}", kMakeOne));
  }
  if (token.size() >= kTokenLettersMin && token.size() <= kTokenLettersMax) return {};
  return token_error(ErrorCode::kConfig, path,
                     fmt::format("has a token of {} characters, which is too {}: {} to {}; {}",
                                 token.size(), token.size() < kTokenLettersMin ? "short" : "long",
                                 kTokenLettersMin, kTokenLettersMax, kMakeOne));
}

Result<std::vector<Secret>> split_tokens(std::string_view text,
                                         const std::filesystem::path& path) {
  std::vector<Secret> tokens;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() && text.empty()) break;
    SPEEDO_TRY(check_token(line, path));
    tokens.emplace_back(line);
  }
  if (tokens.empty()) {
    return token_error(ErrorCode::kConfig, path, fmt::format("is empty; {}", kMakeOne));
  }
  if (tokens.size() > kTokensMax) {
    return token_error(ErrorCode::kConfig, path,
                       fmt::format("has {} tokens; at most {}: the one to use, and under it the "
                                   "one that it replaces",
                                   tokens.size(), kTokensMax));
  }
  return tokens;
}

}  // namespace

Result<Secret> draw_token() {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  // Six bits of each byte: a few letters more than 256 bits need.
  SPEEDO_ASSIGN(std::string random, random_bytes(kTokenLettersMin));
  auto token = Secret::filled_by([&](std::span<char> memory) -> Result<std::size_t> {
    for (std::size_t i = 0; i < random.size(); ++i) {
      memory[i] = kLetters[static_cast<unsigned char>(random[i]) % kLetters.size()];
    }
    return random.size();
  });
  wipe(random);
  return token;
}

Result<void> create_token_file(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const Secret token, draw_token());
  return write_new_file(path, {token.reveal(), "\n"}, std::filesystem::perms{0600});
}

Result<std::vector<Secret>> read_token_file(const std::filesystem::path& path,
                                            const std::function<bool()>& stopped) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return token_unreadable(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return token_unreadable(path, errno);
  if (is_open_to_others(status)) {
    return token_error(ErrorCode::kRefused, path,
                       fmt::format("can be read or changed by other users: chmod 600 {}",
                                   path.string()));
  }
  // In memory that is kept out of core dumps, until it is divided.
  std::vector<Secret> tokens;
  const auto whole = Secret::filled_by([&](std::span<char> memory) -> Result<std::size_t> {
    const ssize_t got = read_patiently(file.get(), memory, stopped);
    if (got < 0) return token_unreadable(path, errno);
    const auto size = static_cast<std::size_t>(got);
    SPEEDO_ASSIGN(tokens, split_tokens(std::string_view(memory.data(), size), path));
    return size;
  });
  if (!whole) return whole.error();
  return tokens;
}

}  // namespace speedo
