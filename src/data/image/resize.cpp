// Pixel x of the target lies at (x + 1/2) * from / to - 1/2 of the source; beyond the outer pixels'
// middles the outer pixels count alone: across with the whole weight, down with both weights, which
// are rounded one by one. Weights have 11 bits; a row of the source is stretched with them first,
// then two rows are weighed: each loses 4 bits, its product 16, and the sum, rounded, the last 2.

#include "data/image/resize.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

constexpr float kOne = 2048.0F;

// The two pixels between which one of the target lies, and their weights.
struct Between {
  std::int64_t low = 0, high = 0;
  std::int32_t low_weight = 0, high_weight = 0;
};

enum class Axis { kAcross, kDown };

std::vector<Between> places(std::int64_t from, std::int64_t to, Axis axis) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  std::vector<Between> result;
  for (std::int64_t i = 0; i < to; ++i) {
    const auto at = static_cast<float>((static_cast<double>(i) + 0.5) * step - 0.5);
    const auto low = static_cast<std::int64_t>(std::floor(at));
    float part = at - static_cast<float>(low);
    if (axis == Axis::kAcross && (low < 0 || low >= from - 1)) part = 0.0F;
    const std::int64_t last = from - 1;
    result.push_back({std::clamp(low, std::int64_t{0}, last),
                      std::clamp(low + 1, std::int64_t{0}, last),
                      static_cast<std::int32_t>(std::lrintf((1.0F - part) * kOne)),
                      static_cast<std::int32_t>(std::lrintf(part * kOne))});
  }
  return result;
}

void stretch_row(const std::uint8_t* row, const std::vector<Between>& columns,
                 std::vector<std::int32_t>& target) {
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const Between& place = columns[x];
    target[x] = row[place.low] * place.low_weight + row[place.high] * place.high_weight;
  }
}

void stretch_plane(const std::uint8_t* plane, std::int64_t row_bytes,
                   const std::vector<Between>& rows, const std::vector<Between>& columns,
                   std::uint8_t* target) {
  std::vector<std::int32_t> low(columns.size()), high(columns.size());
  std::int64_t low_row = -1, high_row = -1;
  for (const Between& place : rows) {
    if (place.low != low_row && place.low == high_row) {
      std::swap(low, high);
      std::swap(low_row, high_row);
    }
    if (place.low != low_row) stretch_row(plane + place.low * row_bytes, columns, low);
    low_row = place.low;
    if (place.high != high_row) stretch_row(plane + place.high * row_bytes, columns, high);
    high_row = place.high;
    for (std::size_t x = 0; x < columns.size(); ++x) {
      const std::int32_t sum =
          ((place.low_weight * (low[x] >> 4)) >> 16) + ((place.high_weight * (high[x] >> 4)) >> 16);
      *target++ = static_cast<std::uint8_t>(std::clamp((sum + 2) >> 2, 0, 255));
    }
  }
}

}  // namespace

void resize_image(Record& record, std::int64_t height, std::int64_t width) {
  SPEEDO_ASSERT(height >= 1 && width >= 1);
  SPEEDO_ASSERT(static_cast<std::int64_t>(record.bytes.size()) == record.count());
  if (record.height == height && record.width == width) return;
  const std::vector<Between> rows = places(record.height, height, Axis::kDown);
  const std::vector<Between> columns = places(record.width, width, Axis::kAcross);
  std::vector<std::uint8_t> target(static_cast<std::size_t>(record.channels * height * width));
  for (std::int64_t c = 0; c < record.channels; ++c) {
    stretch_plane(record.bytes.data() + c * record.height * record.width, record.width, rows,
                  columns, target.data() + c * height * width);
  }
  record.bytes = std::move(target);
  record.height = height;
  record.width = width;
}

}  // namespace speedo
