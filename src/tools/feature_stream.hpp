#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

class DatabaseWriter;

// Features on their way from one process to another: serialized Datums, each with the number of its
// blob, in the order in which they were put, and how many there were. Numbers are little-endian.
//
//   stream := "SPDFEAT1" record* end
//   record := blob:u32 size:u32 bytes
//   end    := 0xffffffff:u32 records:u64

// Begins a stream. Error: kCannotWrite.
Result<void> begin_feature_stream(std::FILE* stream);
// What puts the values of one blob; `records` counts those of all. Both and the stream outlive it.
std::unique_ptr<DatabaseWriter> make_stream_writer(std::FILE* stream, std::uint32_t blob,
                                                   std::uint64_t& records);
Result<void> end_feature_stream(std::FILE* stream, std::uint64_t records);

// Calls `take` for each record of the stream in a file. Errors: kCorrupt if it is not whole, found
// before any record is given to `take`; those of `take`.
using TakeFeature = std::function<Result<void>(std::uint32_t blob, std::string datum)>;
Result<void> read_feature_stream(const std::filesystem::path& path, const TakeFeature& take);

}  // namespace speedo
