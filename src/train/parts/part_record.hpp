#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/factor_shape.hpp>
#include <speedo/core/parameter_arena.hpp>

namespace speedo {

// What mergers of parts that run elsewhere read of a job, beside its JobSpec: a blob.
struct PartRecord {
  ParameterLayout layout;  // of the whole model
  std::uint64_t publish_interval = 0;
  bool has_copies = true;  // see PartSetup
  std::vector<FactorShape> factor_shapes = {};  // see MergerConfig
};
std::string parts_key();
std::string encode(const PartRecord& record);
// Error: kCorrupt.
Result<PartRecord> decode_parts(std::string_view bytes);

}  // namespace speedo
