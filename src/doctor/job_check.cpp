#include "doctor/job_check.hpp"

#include <speedo/core/solver.hpp>

#include "base/memory_limit.hpp"
#include "checkpoint/snapshot.hpp"
#include "checkpoint/snapshot_room.hpp"
#include "cli/solver_file.hpp"
#include "measure/memory_forecast.hpp"

namespace speedo {

namespace {

// What a long training should at least have room for.
constexpr std::int64_t kSnapshotsWanted = 3;

Finding solver_found(const SolverFile& file, const std::string& name) {
  if (file.solver.max_iter() > 0) return {"solver", Health::kOk, "'" + name + "' is one"};
  return {"solver", Health::kWarning, "'" + name + "' has no max_iter",
          "add it, or give --max-iter"};
}

const char* remedy_of_net(ErrorCode code) {
  if (code == ErrorCode::kData) {
    return "mend that file or leave it out; of records, --on-bad-record skip passes over it";
  }
  if (code == ErrorCode::kNotFound) {
    return "paths are relative to the prototxt's folder, or to the working directory; workers need "
           "the data at the same path";
  }
  return "mend the prototxt: the message names layer and field";
}

Finding check_net(const SolverFile& file, Backend& backend, FeedFactory& feeds,
                  JobNeed& need) {
  const SolverOptions options{.backend = &backend, .feeds = &feeds, .base = file.base};
  const auto forecast = forecast_training(file.solver, options);
  if (!forecast) {
    return {"net and data", Health::kProblem, forecast.error().message,
            remedy_of_net(forecast.error().code)};
  }
  need.weight_bytes = forecast->weight_bytes;
  need.process_bytes = forecast->bytes_in(MemoryKind::kHost);
  need.device_bytes = forecast->bytes_in(MemoryKind::kDevice);
  return {"net and data", Health::kOk,
          "the nets can be built; weights of " + format_bytes(forecast->weight_bytes)};
}

Finding check_snapshot_folder(const SolverFile& file) {
  auto writable = SnapshotWriter(file.solver).check_writable();
  if (writable) {
    return {"snapshot folder", Health::kOk,
            "'" + file.solver.snapshot_prefix() + "...' can be written"};
  }
  return {"snapshot folder", Health::kProblem, writable.error().message,
          "create the folder, or let snapshot_prefix name one that may be written"};
}

Finding check_room_for_snapshots(const SolverFile& file, std::int64_t weight_bytes) {
  const char* remedy = "free space there, keep fewer (--keep-snapshots), or take another folder";
  const auto bytes = snapshot_bytes(weight_bytes, file.solver);
  if (!bytes) return {"snapshot room", Health::kProblem, bytes.error().message, "mend the solver"};
  const auto room = check_snapshot_room(file.solver.snapshot_prefix(),
                                        {.bytes = *bytes * kSnapshotsWanted, .count = 1});
  if (!room) return {"snapshot room", Health::kProblem, room.error().message, remedy};
  return {"snapshot room", Health::kOk,
          "three snapshots of " + format_bytes(*bytes) + " have room"};
}

}  // namespace

Findings check_job(const std::string& solver_file, const StateFlags& state, Backend& backend,
                   FeedFactory& feeds, JobNeed& need) {
  auto file = load_solver(solver_file);
  if (!file) {
    return {{"solver", Health::kProblem, file.error().message, "give a solver prototxt"}};
  }
  apply(state, file->solver);
  Findings findings = {solver_found(*file, solver_file)};
  if (file->solver.max_iter() <= 0) file->solver.set_max_iter(1);
  // A cluster tests at the end where no interval is given.
  if (file->solver.test_iter_size() > 0 && file->solver.test_interval() == 0) {
    file->solver.set_test_interval(file->solver.max_iter());
  }
  findings.push_back(check_net(*file, backend, feeds, need));
  findings.push_back(check_snapshot_folder(*file));
  if (findings.back().health == Health::kOk && need.weight_bytes > 0) {
    findings.push_back(check_room_for_snapshots(*file, need.weight_bytes));
  }
  return findings;
}

}  // namespace speedo
