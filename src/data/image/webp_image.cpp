#include <webp/decode.h>

#include "data/claimed_size.hpp"
#include "data/image/decoded_pixels.hpp"

namespace speedo {

Result<void> decode_webp(std::span<const std::byte> file, ImageColor color, DecodedPixels& pixels) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(bytes, file.size(), &features) != VP8_STATUS_OK) {
    return bad_image("is a damaged WebP");
  }
  if (features.has_animation != 0) {
    return Error{ErrorCode::kUnsupported,
                 "holds a WebP animation: take its pictures apart, or leave it out"};
  }
  const auto height = static_cast<std::uint64_t>(features.height);
  const auto width = static_cast<std::uint64_t>(features.width);
  const std::int64_t channels = features.has_alpha != 0 ? 4 : 3;
  SPEEDO_TRY(check_image({height, width, height * width,
                          saturating_product(file.size(), kOtherFilterRatioMax), file.size()}));
  pixels.resize(channels, features.height, features.width);
  const int stride = static_cast<int>(channels) * features.width;
  const auto* decoded = channels == 4 ? WebPDecodeBGRAInto(bytes, file.size(), pixels.values.data(),
                                                           pixels.values.size(), stride)
                                      : WebPDecodeBGRInto(bytes, file.size(), pixels.values.data(),
                                                          pixels.values.size(), stride);
  if (decoded == nullptr) return bad_image("is a damaged WebP");
  // OpenCV leaves WebP's gray to its cvtColor(), whose weights are finer than its readers' own.
  if (color == ImageColor::kGray) make_gray(pixels, {3735, 19235, 9798, 16384});
  return {};
}

}  // namespace speedo
