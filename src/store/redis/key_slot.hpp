#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace speedo {

// Slots that the keys of a Redis Cluster lie in.
inline constexpr std::size_t kKeySlots = 16384;

// The slot of a key: CRC16 (XMODEM) of its hash tag, or of all of it if it has none, mod kKeySlots.
// The hash tag is what stands between the first '{' and the next '}', unless that is nothing.
std::uint16_t key_slot(std::string_view key);

// Hash tags of a job's kClusterParts parts. Their slots are equally far apart, so each primary that
// has a range of slots gets its share of the parts, however many primaries there are. The first is
// the job's name, the others "JOB:N" with the smallest N whose slot is the part's. Parts that
// follow each other are 7 / 16 of all slots apart: three primaries or more have them on different
// ones.
// The same in each process and each version of this program.
std::vector<std::string> part_tags(const std::string& job);

}  // namespace speedo
