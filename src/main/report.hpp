#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace speedo {

// The result of a command that trains or tests: with --json the last line of standard output, else
// one line for people. Unknown figures are null in JSON and left out for people.
struct Report {
  std::optional<std::uint64_t> iterations;
  std::optional<std::uint64_t> merges;         // updates of the weights by this run
  std::optional<std::uint64_t> contributions;  // of workers, that went into them
  std::optional<double> loss;       // of training; of the test for `speedo test`
  std::optional<double> accuracy;   // of the last test
  std::optional<double> test_loss;  // of the last test
  std::optional<double> seconds;
  std::optional<double> images_per_second;
  std::optional<std::uint64_t> workers;          // most that took part at one time
  std::optional<std::uint64_t> rejected;         // contributions that were not finite or damaged
  std::optional<std::uint64_t> discarded;        // contributions that the schedule dropped
  std::optional<std::uint64_t> ignored;          // reports that came late, twice or from strangers
  std::optional<double> mean_staleness;          // merges between reading and merging, mean
  std::optional<double> seconds_to_first_merge;  // from the start of the process
  std::optional<std::uint64_t> stage;            // of the schedule at the end, from 1
  std::optional<std::uint64_t> epoch;            // of the master
  std::optional<std::uint64_t> restarts;         // of workers, by `speedo run`
  std::string snapshot;                          // the last model file written
};

std::string to_json(const Report& report);
std::string to_text(const Report& report);

// The same result with the restarts of workers in it, of which a master does not know.
std::string with_restarts(const std::string& printed, bool json, std::uint64_t restarts);

// Prints one of the two on standard output.
void print(const Report& report, bool json);

}  // namespace speedo
