#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <speedo/backend/device.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>

namespace speedo {

// The memory that a process will hold at its peak, predicted from nets that are planned but not
// allocated. On a device with memory of its own the first six lie there, all others on the host.
struct MemoryForecast {
  std::int64_t weight_bytes = 0;
  std::int64_t weight_grad_bytes = 0;
  std::int64_t history_bytes = 0;    // of the solver
  std::int64_t blob_bytes = 0;       // of all nets: values and gradients, memory sharing planned
  std::int64_t workspace_bytes = 0;  // what layers and operations keep between passes
  std::int64_t scratch_bytes = 0;    // what they share
  std::int64_t batch_bytes = 0;      // data read ahead
  std::int64_t exchange_bytes = 0;   // weights kept to be compared or merged
  std::int64_t snapshot_bytes = 0;   // while a snapshot is written
  std::int64_t base_bytes = 0;       // the process with its nets, before they have memory
  MemoryKind nets = MemoryKind::kHost;  // whose memory the first six take
  std::int64_t total_bytes() const;
  // What lies in the memory of the host, or of such a device.
  std::int64_t bytes_in(MemoryKind memory) const;
};

// Of one planned net that trains or not; `histories`: arrays of the size of its weights. Requires:
// the net and its feeds are alive, nothing else is.
MemoryForecast forecast(const Net& net, bool trains, std::size_t histories,
                        const FeedFactory& feeds);

// Of a training by this solver, with the tests that it names, whose net is planned here. Errors:
// those of its nets and its data.
Result<MemoryForecast> forecast_training(const caffe::SolverParameter& solver,
                                         SolverOptions options);

// Of so many alike in one process, which share only what it takes without them.
MemoryForecast times(const MemoryForecast& forecast, std::uint64_t count);

// "weights 90 MiB, their gradients 90 MiB, ..." of one of the two memories; what is nothing is left
// out.
std::string parts_text(const MemoryForecast& forecast, MemoryKind memory);
// The same after its bytes: "812 MiB: weights ...".
std::string to_text(const MemoryForecast& forecast, MemoryKind memory);
// Of both: "812 MiB: weights ...; on the host 90 MiB: process ...".
std::string to_text(const MemoryForecast& forecast);
nlohmann::ordered_json to_json(const MemoryForecast& forecast);

}  // namespace speedo
