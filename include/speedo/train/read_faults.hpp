#pragma once

#include <cstdint>

namespace speedo {

// What went wrong with a worker's data, and was passed over.
struct ReadFaults {
  std::uint64_t skipped_records = 0;  // bad ones, each once of each worker that came upon it
  std::uint64_t parser_deaths = 0;    // parser processes that ended early
  ReadFaults& operator+=(const ReadFaults& other) {
    skipped_records += other.skipped_records;
    parser_deaths += other.parser_deaths;
    return *this;
  }
  bool operator==(const ReadFaults&) const = default;
};

}  // namespace speedo
