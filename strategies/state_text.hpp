#pragma once

// The text in which a strategy keeps its state: one line "name" per strategy, then one line
// "key number number ..." per set of workers, ascending.

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

using WorkerSet = std::set<WorkerId>;

// A line of the state: its key and its workers.
template <class Set>
using StateLine = std::pair<const char*, Set*>;

std::string save_state(const char* strategy,
                       std::initializer_list<StateLine<const WorkerSet>> lines);

// Fills every set, or none. Error: kCorrupt, naming the line that is not as save_state() writes it.
Result<void> restore_state(std::string_view text, const char* strategy,
                           std::initializer_list<StateLine<WorkerSet>> lines);

}  // namespace speedo
