#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include <speedo/base/result.hpp>

#include "data/image/decoded_pixels.hpp"
#include "sandbox/helper_pool.hpp"
#include "sandbox/helper_server.hpp"

namespace speedo {

// Images as tasks of a helper process: the input is a file, the first number an ImageColor; the
// output are interleaved pixels of as many channels, rows and columns as the answer's numbers say.
inline constexpr std::uint32_t kImageTask = 1;

// decode_pixels() of each file by the helper. `take` has the pixels one by one, in the order of the
// files. They lie in memory that the helper can still write to: any values are as good as others.
// Valid until it returns. Errors: also as HelperLoan::run().
using TakePixels = std::function<void(std::size_t index, Result<DecodedPixels> pixels)>;
void decode_in_helper(HelperLoan& helper, std::span<const std::span<const std::byte>> files,
                      ImageColor color, const TakePixels& take);

// In the helper.
Result<HelperAnswer> serve_image(const HelperTask& task, std::span<std::byte> output);

}  // namespace speedo
