#pragma once

#include <cstddef>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

#include "train/parts/part_orders.hpp"

namespace speedo {

// A copy of a part on its way from a merger that runs elsewhere: a record on the part's own server,
// weights first. Blocking.

// The answer as it travels to the master: a copy without its values, once they are in the store;
// one that cannot be put there has failed.
PartAnswer with_copy_stored(RecordStore& store, std::size_t part, PartAnswer answer);
// Errors: those of the store; kMismatch for what is no copy of a part of so many floats, or of
// another order.
Result<part_answer::Copied> get_copy(RecordStore& store, std::size_t part, std::uint64_t order,
                                     std::size_t part_count);

}  // namespace speedo
