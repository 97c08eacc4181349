#include "fuzz/seeds.hpp"

#include <filesystem>
#include <fstream>
#include <span>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/digest.hpp>

namespace speedo::fuzz {

std::string byte_text(unsigned value) { return std::string(1, static_cast<char>(value)); }

std::string piece_text(const std::string& piece) {
  SPEEDO_ASSERT(piece.size() < 65536);
  const auto size = static_cast<unsigned>(piece.size());
  return byte_text(size & 0xFFU) + byte_text(size >> 8U) + piece;
}

std::vector<Seed> all_seeds() {
  std::vector<Seed> all;
  for (const auto make : {record_seeds, dataset_seeds, model_seeds, text_seeds, network_seeds}) {
    for (Seed& seed : make()) all.push_back(std::move(seed));
  }
  return all;
}

std::string name_of(const Seed& seed) {
  const auto bytes = std::as_bytes(std::span(seed.bytes.data(), seed.bytes.size()));
  return fmt::format("{:016x}", checksum_of(bytes));
}

void write_seeds(const std::string& folder) {
  for (const Seed& seed : all_seeds()) {
    const std::filesystem::path target = std::filesystem::path(folder) / seed.target;
    std::filesystem::create_directories(target);
    std::ofstream(target / name_of(seed), std::ios::binary) << seed.bytes;
  }
}

}  // namespace speedo::fuzz
