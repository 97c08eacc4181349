#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace speedo {

// How servers are dealt with. The defaults are the limits of the program, with their reasons.
struct RemoteTerms {
  // A server across an ocean answers within a second.
  std::chrono::milliseconds connect_timeout{10000};
  // A transfer that gives less than this for so long is taken for stalled.
  std::int64_t stalled_bytes_a_second = 1024;
  std::chrono::seconds stalled_for{30};
  // Attempts in a row that bring nothing on, and the waits between them: some 20 s in all, as a
  // server needs that starts again. An attempt that brought less than `progress_bytes`, and
  // less than a 64th of what was wanted, brought nothing on.
  int attempts_max = 8;
  std::chrono::milliseconds backoff_first{200};
  std::chrono::milliseconds backoff_max{5000};
  // What a busy server may ask for with Retry-After.
  std::chrono::milliseconds retry_after_max{30000};
  std::uint64_t progress_bytes = 65536;
  // Answers that break their promise, or are of another version: a proxy may do so once.
  int broken_promises_max = 3;
  // Times that a file may be another one when its transfer ends than when it began.
  int changes_max = 3;
  // What is asked for at once: enough that asking costs nothing, little enough to be lost.
  std::uint64_t part_bytes = std::uint64_t{8} << 20U;
  // Parts of one file under way: servers give one connection less than a network takes.
  int connections = 4;
  // Between two lines about a long transfer.
  std::chrono::seconds progress_interval{5};

  // What the files of the cache may take together; 0: no limit.
  std::uint64_t cache_bytes_max = 0;

  // Certificates that servers are checked against; empty: the system's.
  std::string authority_file = {};
  // Whether the process is asked to end; empty: never. Called on every thread that transfers.
  std::function<bool()> stopped = {};
};

}  // namespace speedo
