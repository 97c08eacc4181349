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
  bool complete = false;                       // nothing was left to train; in no output by itself
  std::optional<double> loss;       // of training; of the test for `speedo test`
  std::optional<double> accuracy;   // of the last test
  std::optional<double> test_loss;  // of the last test
  std::optional<std::uint64_t> tested_iteration;  // whose weights the last test was of
  std::optional<double> seconds;
  std::optional<double> images_per_second;
  std::optional<std::uint64_t> workers;          // most that took part at one time
  std::optional<std::uint64_t> rejected;         // contributions that were not finite or damaged
  std::optional<std::uint64_t> discarded;        // contributions that the schedule dropped
  std::optional<std::uint64_t> ignored;          // reports that came late, twice or from strangers
  std::optional<double> mean_staleness;          // merges between reading and merging, mean
  std::optional<double> seconds_to_first_merge;  // from the start of the process
  std::optional<std::uint64_t> stage;            // of the schedule at the end, from 1
  std::optional<std::uint64_t> term;            // of the master
  std::optional<std::uint64_t> restarts;         // of workers, by `speedo run`
  // Bad ones, with --on-bad-record skip; by a cluster's workers, each by each that came upon it.
  std::optional<std::uint64_t> skipped_records;
  std::optional<std::uint64_t> parser_deaths;    // parser processes that ended early
  // Where the steps' time went, of all workers together.
  std::optional<double> data_wait_seconds, compute_seconds, exchange_seconds;
  // Of computing, and between runs; of a cluster's workers.
  std::optional<double> forward_seconds, backward_seconds, wait_seconds;
  std::optional<std::uint64_t> predicted_memory_bytes;  // at the peak, of a process that trains
  std::optional<std::uint64_t> peak_memory_bytes;       // the same, measured
  std::string snapshot;                          // the last model file written
};

std::string to_json(const Report& report);
std::string to_text(const Report& report);

// "0.4 % of the time waiting for data, 95.1 % computing"; of a cluster's workers "..., 31.0 %
// forward, 60.1 % backward, 4.5 % exchanging, 4.0 % waiting for master and other workers". Empty if
// nothing is known.
std::string phases_text(const Report& report);

// Whether it tells of a training that changed the weights. `printed`: to_json() or to_text().
bool shows_training(const std::string& printed, bool json);

// What `speedo run` knows of its workers, and their master does not.
struct WorkerFigures {
  std::uint64_t restarts = 0;
  std::uint64_t predicted_memory_bytes = 0;  // of one process; 0: unknown
  std::uint64_t peak_memory_bytes = 0;       // of the largest; 0: unknown
};
// The same result with them.
std::string with_workers(const std::string& printed, bool json, const WorkerFigures& figures);

// The peak of this process so far, which also goes to the log at its debug level.
void add_peak_memory(Report& report);

// Prints one of the two on standard output.
void print(const Report& report, bool json);

}  // namespace speedo
