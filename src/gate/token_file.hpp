#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/base/secret.hpp>

namespace speedo {

// A token: 256 random bits as text, which a master and its workers have in common. Whoever has it
// may join, watch, or pass for the master.
//
// Its file has one line, or two while it is being changed: the first is what this side proves, and
// both are accepted. At most a newline behind each, nothing else.

inline constexpr std::size_t kTokenLettersMin = 43;  // 256 bits in base64
inline constexpr std::size_t kTokenLettersMax = 512;
inline constexpr std::size_t kTokensMax = 2;

// Newly drawn. Error: kInternal.
Result<Secret> draw_token();

// Writes a new token into a file that must not exist, for this user alone. Errors: kCannotWrite,
// kInternal.
Result<void> create_token_file(const std::filesystem::path& path);

// A named pipe will do as well, and is waited for until `stopped` says yes (none: for ever).
// Errors: kNotFound; kRefused for a file that others may read or change, or that cannot be read;
// kConfig for what holds no token, with what it lacks; kUnavailable if stopped.
Result<std::vector<Secret>> read_token_file(const std::filesystem::path& path,
                                            const std::function<bool()>& stopped = {});

}  // namespace speedo
