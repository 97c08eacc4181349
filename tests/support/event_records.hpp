#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cli/report/event_file.hpp"
#include "support/catch.hpp"
#include "tensorboard.pb.h"

namespace speedo {

// The events of a file of TFRecords, whose sums are right.
inline std::vector<tensorboard::Event> events_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const auto masked_sum = [](const std::string& text) {
    const std::uint32_t sum = crc32c(text);
    return ((sum >> 15U) | (sum << 17U)) + 0xA282EAD8U;
  };
  const auto number = [&](std::size_t at, auto value) {
    REQUIRE(at + sizeof value <= bytes.size());
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  std::vector<tensorboard::Event> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = number(at, std::uint64_t{0});
    CHECK(number(at + 8, std::uint32_t{0}) == masked_sum(bytes.substr(at, 8)));
    const std::string data = bytes.substr(at + 12, size);
    CHECK(number(at + 12 + size, std::uint32_t{0}) == masked_sum(data));
    REQUIRE(events.emplace_back().ParseFromString(data));
    at += 16 + size;
  }
  return events;
}

// The only file in a folder.
inline std::vector<tensorboard::Event> events_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& each : std::filesystem::directory_iterator(folder)) files.push_back(each.path());
  REQUIRE(files.size() == 1);
  return events_of(files.front());
}

}  // namespace speedo
