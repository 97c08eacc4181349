#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/store/parameter_store.hpp>

namespace speedo {

// Keys of the checkpoints that mergers of so many parts leave, and of their copies.
std::vector<std::string> part_checkpoint_keys(std::size_t parts);

// Those of them that the store has, or may have.
std::vector<std::string> part_checkpoints_in(ParameterStore& store);

// The solver's histories, each as long as the weights, that the mergers of parts have left with the
// newest weights.
struct PartHistories {
  std::vector<std::vector<float>> histories;
  bool are_older = false;  // than the weights, in some part
};

// For a master that merges the whole: each part's from its own server or from the copy on the next
// one. Errors: kNotFound if a part has none of the newest weights' master that are whole; those of
// the store.
Result<PartHistories> read_part_histories(ParameterStore& store, const ParameterLayout& layout);

}  // namespace speedo
