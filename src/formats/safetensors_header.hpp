#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

namespace speedo {

// kOther: of integers and the like, which lies in the file and cannot be read.
enum class SafetensorsType : std::uint8_t { kF64, kF32, kF16, kBf16, kOther };

// One array of a safetensors file.
struct StoredTensor {
  std::string name;
  SafetensorsType type = SafetensorsType::kF32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // in the data behind the header
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;  // as they lie in the data
};

// The JSON between a safetensors file's first eight bytes and its data, of which there are so many
// bytes. What it says is checked: names once, types that the format knows, shapes that make the
// bytes between the offsets, and arrays one behind another, without gaps, to the end of the data.
// Error: kData, without the file's name.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes);

// The JSON of a header whose tensors have their offsets.
std::string to_json(const SafetensorsHeader& header);

}  // namespace speedo
