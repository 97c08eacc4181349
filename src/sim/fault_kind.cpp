#include "sim/fault_kind.hpp"

#include <array>
#include <cstddef>

namespace speedo::sim {
namespace {

constexpr std::array kFaultNames{
    "kill worker",
    "freeze worker",
    "stall worker",
    "flap worker",
    "worker leaves",
    "kill worker in put",
    "worker clock",
    "reset connection",
    "cut worker",
    "cut worker-store",
    "bad loss",
    "kill master",
    "kill master in merge",
    "freeze master",
    "freeze master in merge",
    "master clock",
    "cut master-store",
    "rival master",
    "restart store",
    "store loses a second",
    "store loses all",
    "restart store in merge",
    "damage contribution",
    "bad store",
    "kill master in files",
    "damage checkpoint",
    "other training",
    "bad network",
    "kill shard",
    "kill shard in merge",
    "freeze shard",
    "cut shard",
    "cut shard-store",
    "restart shard's store",
    "shard's store loses all",
    "shard and store lost",
    "shard's store in merge",
    "kill master at manifest",
    "cut master at manifest",
};
static_assert(kFaultNames.size() == kFaultKinds);

}  // namespace

const char* to_string(FaultKind kind) { return kFaultNames[static_cast<std::size_t>(kind)]; }

}  // namespace speedo::sim
