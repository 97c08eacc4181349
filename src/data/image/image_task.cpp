#include "data/image/image_task.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace speedo {

namespace {

// Whether they are what a decoder makes, of exactly so many bytes.
bool is_image(const HelperNumbers& numbers, std::size_t bytes) {
  const auto [channels, height, width, orientation] = numbers;
  if (orientation != static_cast<int>(orientation)) return false;
  if (channels != 1 && channels != 3 && channels != 4) return false;
  std::int64_t count = 0;
  return height > 0 && width > 0 && !__builtin_mul_overflow(height, width, &count) &&
         !__builtin_mul_overflow(count, channels, &count) &&
         static_cast<std::uint64_t>(count) == bytes;
}

std::span<std::uint8_t> as_pixels(std::span<std::byte> bytes) {
  return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

Result<DecodedPixels> pixels_of(Result<HelperReply> reply) {
  if (!reply) return std::move(reply).error();
  if (!is_image(reply->numbers, reply->output.size())) {
    return bad_image("its decoder makes no image of");
  }
  DecodedPixels pixels;
  pixels.channels = reply->numbers[0];
  pixels.height = reply->numbers[1];
  pixels.width = reply->numbers[2];
  pixels.orientation = static_cast<int>(reply->numbers[3]);
  pixels.values = as_pixels(reply->output);
  return pixels;
}

}  // namespace

void decode_in_helper(HelperLoan& helper, std::span<const std::span<const std::byte>> files,
                      ImageColor color, const TakePixels& take) {
  std::vector<HelperTask> tasks;
  tasks.reserve(files.size());
  for (const std::span<const std::byte> file : files) {
    tasks.push_back({.kind = kImageTask,
                     .numbers = {static_cast<std::int64_t>(color)},
                     .input = file,
                     .subject = "holds an encoded image that"});
  }
  helper.run_all(tasks, [&](std::size_t index, Result<HelperReply> reply) {
    take(index, pixels_of(std::move(reply)));
  });
}

Result<HelperAnswer> serve_image(const HelperTask& task, std::span<std::byte> output) {
  DecodedPixels pixels(as_pixels(output));
  SPEEDO_TRY(decode_pixels(task.input, static_cast<ImageColor>(task.numbers[0]), pixels));
  if (!pixels.is_in_room()) {
    return bad_image(
        fmt::format("has {}x{} pixels, more than a parser process may hold: raise "
                    "--parser-memory",
                    pixels.height, pixels.width));
  }
  return HelperAnswer{{pixels.channels, pixels.height, pixels.width, pixels.orientation},
                      pixels.values.size()};
}

}  // namespace speedo
