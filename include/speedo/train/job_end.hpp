#pragma once

#include <cstdint>

#include <speedo/base/result.hpp>
#include <speedo/store/blob_store.hpp>

namespace speedo {

// The end of a job as its last master leaves it in the store: workers that were away look there,
// and a later master learns from it that nobody waits. Masters that another one may follow leave
// none.

// Error: those of the store.
Result<void> put_job_end(BlobStore& store, std::uint64_t term);
Result<void> erase_job_end(BlobStore& store);

// Whether the job is over that a master of `term` admitted a worker to: ended by that master or a
// later one. Errors: those of the store but kNotFound and kCorrupt, which mean no.
Result<bool> is_job_over(BlobStore& store, std::uint64_t term);

}  // namespace speedo
