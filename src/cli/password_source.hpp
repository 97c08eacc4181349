#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "cli/process_secrets.hpp"

namespace speedo {

// The password in a file: all of it but one newline at its end. A file that others may read is
// warned of. Errors: kNotFound; kRefused if it may not be read; kConfig if it is empty, a folder,
// too long or more than a line; kUnavailable if a signal asks to stop (cli/signals.hpp) while a
// named pipe is waited for.
Result<Secret> read_password_file(const std::filesystem::path& file);

// `text` as a secret. `source`: where it comes from, for errors. Errors: kConfig if it is too long
// or has control characters; the text is not repeated.
Result<Secret> checked_password(std::string_view text, const std::string& source);

// What opens Redis: the password of the file, if one is named, which is then read anew for each
// connection, else the environment's, else the
// address's; the user of the environment, else the address's. Says which password is used, and
// warns of one that was on the command line. Errors: those of read_password_file().
Result<RedisCredentials> redis_credentials(const std::string& password_file,
                                           const ProcessSecrets& secrets);

}  // namespace speedo
