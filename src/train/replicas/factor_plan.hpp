#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <speedo/core/factor_shape.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/train/update.hpp>

namespace speedo {

// Bytes that a worker of a round of `workers` sends and receives for one parameter: its gradient
// and the mean's; or its own factors and those of all.
double gradient_bytes(const FactorShape& shape);
double factor_bytes(const FactorShape& shape, std::uint64_t workers);

// Those of `possible` that travel as factors: where these are fewer bytes (Poseidon's HybComm, for
// a mean that comes from one place).
std::vector<FactorShape> choose_factors(std::span<const FactorShape> possible,
                                        std::uint64_t workers);

// The same of an update that may leave them out.
std::vector<FactorShape> choose_factors(const UpdateSpec& update,
                                        std::span<const FactorShape> possible,
                                        std::uint64_t workers);

// Whether any of the updates has factors.
bool any_factors(std::span<const UpdateSpec> updates, std::span<const FactorShape> possible,
                 std::uint64_t workers);

// "fc6, fc7 as factors: 3.1 MiB instead of 421 MiB a worker and round"; of none: "no gradients as
// factors".
std::string describe_factors(const ParameterLayout& layout, std::span<const FactorShape> factors,
                             std::uint64_t workers);

}  // namespace speedo
