#pragma once

#include <chrono>

#include <speedo/base/result.hpp>

#include "remote/client_pool.hpp"
#include "remote/origin.hpp"
#include "remote/partial_file.hpp"

namespace speedo {

// Asks the server about the file, again after failures that may pass. One that tells no version
// counts as one without ranges.
Result<FileFacts> look_up(const Origin& origin, const RemoteTerms& terms, ClientPool& clients);

// Brings the parts that `file` lacks, several at once if the server has ranges; what fails for a
// while is asked for again from where it broke off. Errors: those of HttpClient::perform() and
// Origin::check(), of the first part that is given up, and those of writing. What came stays.
Result<void> transfer(const Origin& origin, const FileFacts& facts, const RemoteTerms& terms,
                      ClientPool& clients, PartialFile& file);

// How large the parts of a file are: terms.part_bytes, more for one so large that the list of its
// parts would be.
std::uint64_t part_bytes_of(const FileFacts& facts, const RemoteTerms& terms);

// False, at once, when the process is asked to end.
bool wait_unless_stopped(const RemoteTerms& terms, std::chrono::milliseconds time);

}  // namespace speedo
