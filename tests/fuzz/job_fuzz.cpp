// What masters leave in the store for workers, mergers of parts and replicas.
#include <speedo/base/assert.hpp>
#include <speedo/train/trainer.hpp>

#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "train/job/job_solver.hpp"
#include "train/parts/part_record.hpp"
#include "train/replicas/step_header.hpp"

namespace speedo::fuzz {
namespace {

void read_job(const std::string& bytes) {
  const auto job = decode_job(bytes);
  if (!job) return;
  const auto again = decode_job(encode(*job));
  SPEEDO_ASSERT(again && again->stages == job->stages && again->base == job->base);
  const auto solver = parse_solver(*job);
  if (!solver) return;
  SPEEDO_ASSERT(without_tests(solver_of(*solver, job->stages.front())).test_iter_size() == 0);
  const auto seeded = with_seed(*job);
  SPEEDO_ASSERT(seeded && parse_solver(*seeded));
}

void read_parts(const std::string& bytes) {
  const auto parts = decode_parts(bytes);
  if (!parts) return;
  const auto again = decode_parts(encode(*parts));
  SPEEDO_ASSERT(again);
  SPEEDO_ASSERT(again->layout.element_count() == parts->layout.element_count());
}

SPEEDO_FUZZ_TARGET(job)(Bytes bytes) {
  Input input(bytes);
  const unsigned which = input.byte() % 3U;
  const std::string text = input.text();
  if (which == 0) read_job(text);
  if (which == 1) read_parts(text);
  if (which == 2) {
    const auto header = decode_step_header(text);
    if (header) SPEEDO_ASSERT(decode_step_header(encode(*header)));
    if (header) SPEEDO_ASSERT(step_key(header->iteration).ends_with("/step"));
  }
}

}  // namespace
}  // namespace speedo::fuzz
