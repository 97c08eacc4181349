#pragma once

#include <cstdint>

#include <speedo/data/data_source.hpp>

namespace speedo {

// Stretches the image to these sizes, with values between pixels on straight lines, rounded as
// OpenCV rounds them (INTER_LINEAR). Requires: bytes; sizes from 1.
void resize_image(Record& record, std::int64_t height, std::int64_t width);

}  // namespace speedo
