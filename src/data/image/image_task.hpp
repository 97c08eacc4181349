#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <speedo/base/result.hpp>

#include "data/image/decoded_pixels.hpp"
#include "sandbox/helper_pool.hpp"
#include "sandbox/helper_server.hpp"

namespace speedo {

// Images as tasks of a helper process: the input is a file, the first number an ImageColor; the
// output are interleaved pixels of as many channels, rows and columns as the answer's numbers say.
inline constexpr std::uint32_t kImageTask = 1;

// decode_pixels() by the helper. The pixels lie in memory that it can still write to: any values
// are as good as others. Valid until the helper's next task. Errors: also as HelperLoan::run().
Result<void> decode_in_helper(HelperLoan& helper, std::span<const std::byte> file, ImageColor color,
                              DecodedPixels& pixels);

// In the helper.
Result<HelperAnswer> serve_image(const HelperTask& task, std::span<std::byte> output);

}  // namespace speedo
