#include <csetjmp>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <png.h>

#include "data/claimed_size.hpp"
#include "data/image/decoded_pixels.hpp"
#include "data/image/exif_orientation.hpp"

namespace speedo {

namespace {

// What a PNG's decoder works with. libpng leaves its functions by a long jump where it meets an
// error, so all that owns memory lies here, with the caller.
struct PngWork {
  std::span<const std::byte> left;
  std::jmp_buf back;
  char text[128] = {};
  png_structp decoder = nullptr;
  png_infop info = nullptr, end_info = nullptr;  // what stands before the pixels, and behind them
  std::vector<png_bytep> rows;
  bool is_wide = false;  // whether colors keep their 16 bits, of which a gray is made
  Result<void> checked;

  ~PngWork() { png_destroy_read_struct(&decoder, &info, &end_info); }
};

[[noreturn]] void leave_png(png_structp decoder, png_const_charp message) {
  auto* work = static_cast<PngWork*>(png_get_error_ptr(decoder));
  std::strncpy(work->text, message, sizeof(work->text) - 1);
  std::longjmp(work->back, 1);
}

void pass_over(png_structp, png_const_charp) {}

void read_bytes(png_structp decoder, png_bytep target, png_size_t count) {
  auto* work = static_cast<PngWork*>(png_get_io_ptr(decoder));
  if (count > work->left.size()) png_error(decoder, "it ends too early");
  std::memcpy(target, work->left.data(), count);
  work->left = work->left.subspan(count);
}

// Pixels of eight bits, or of 16 if they are wide: gray, or blue, green, red, perhaps with alpha
// behind. A gray that counts as clear makes none, as in OpenCV.
void ask_for_bytes(PngWork& work) {
  png_structp decoder = work.decoder;
  const int kind = png_get_color_type(decoder, work.info);
  const bool gray = kind == PNG_COLOR_TYPE_GRAY;
  const bool clear = !gray && png_get_valid(decoder, work.info, PNG_INFO_tRNS) != 0;
  if (!work.is_wide) png_set_strip_16(decoder);
  if (gray) {
    png_set_expand_gray_1_2_4_to_8(decoder);
  } else {
    png_set_expand(decoder);
  }
  if (clear) png_set_tRNS_to_alpha(decoder);
  const bool alpha = clear || (kind & PNG_COLOR_MASK_ALPHA) != 0;
  if (alpha && (kind & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(decoder);
  png_set_bgr(decoder);
  png_set_interlace_handling(decoder);
}

// The EXIF may stand before the pixels or behind them; the first is taken, as OpenCV does.
int orientation_in(const PngWork& work) {
  for (const png_infop info : {work.info, work.end_info}) {
    png_uint_32 count = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(work.decoder, info, &count, &exif) == 0) continue;
    return tiff_orientation(std::as_bytes(std::span(exif, count))).value_or(1);
  }
  return 1;
}

[[gnu::noinline]] void decompress(PngWork& work, std::size_t file_bytes, ImageColor color,
                                  DecodedPixels& pixels) {
  png_set_read_fn(work.decoder, &work, read_bytes);
  png_read_info(work.decoder, work.info);
  const std::uint64_t height = png_get_image_height(work.decoder, work.info);
  work.checked = check_image({height, png_get_image_width(work.decoder, work.info),
                              height * png_get_rowbytes(work.decoder, work.info),
                              saturating_product(file_bytes, kDeflateRatioMax), file_bytes});
  if (!work.checked) return;
  work.is_wide = color == ImageColor::kGray && png_get_bit_depth(work.decoder, work.info) == 16 &&
                 (png_get_color_type(work.decoder, work.info) & PNG_COLOR_MASK_COLOR) != 0;
  ask_for_bytes(work);
  png_read_update_info(work.decoder, work.info);
  const std::uint64_t row_bytes = png_get_rowbytes(work.decoder, work.info);
  if (work.is_wide) {
    work.checked =
        check_memory("holds an encoded image of 16 bits a color that", height * row_bytes);
    if (!work.checked) return;
  }
  const std::uint64_t width = png_get_image_width(work.decoder, work.info);
  pixels.resize(static_cast<std::int64_t>(row_bytes / width), static_cast<std::int64_t>(height),
                static_cast<std::int64_t>(width));
  for (std::int64_t y = 0; y < pixels.height; ++y) work.rows.push_back(pixels.row(y));
  png_read_image(work.decoder, work.rows.data());
  png_read_end(work.decoder, work.end_info);
  pixels.orientation = orientation_in(work);
}

// Whether libpng met no error. Its long jump ends here, so no variable of this function may change
// behind setjmp().
bool run_png(PngWork& work, std::size_t file_bytes, ImageColor color, DecodedPixels& pixels) {
  if (setjmp(work.back) != 0) return false;
  decompress(work, file_bytes, color, pixels);
  return true;
}

// As libpng does for OpenCV, with its weights of 0.299 and 0.587; a gamma that the file names is
// passed over, as it is where colors stay. Of bytes the gray is cut, and not rounded.
constexpr GrayWeights kPngWeights{3737, 19234, 9797};

// Of 16 bits each, high byte first, in a row of as many bytes: the gray is rounded, then cut to the
// upper eight.
void make_wide_gray(DecodedPixels& pixels) {
  const auto pixel_bytes = static_cast<std::size_t>(pixels.channels);
  const std::size_t count = pixels.values.size() / pixel_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* color = pixels.values.data() + i * pixel_bytes;
    const auto value = [color](std::size_t c) {
      return std::uint32_t{color[2 * c]} << 8U | color[2 * c + 1];
    };
    const std::uint32_t sum = kPngWeights.blue * value(0) + kPngWeights.green * value(1) +
                              kPngWeights.red * value(2);
    pixels.values[i] = static_cast<std::uint8_t>((sum + 16384) >> 15U >> 8U);
  }
  pixels.resize(1, pixels.height, pixels.width);
}

}  // namespace

Result<void> decode_png(std::span<const std::byte> file, ImageColor color, DecodedPixels& pixels) {
  PngWork work;
  work.left = file;
  work.decoder = png_create_read_struct(PNG_LIBPNG_VER_STRING, &work, leave_png, pass_over);
  if (work.decoder != nullptr) work.info = png_create_info_struct(work.decoder);
  if (work.info != nullptr) work.end_info = png_create_info_struct(work.decoder);
  if (work.end_info == nullptr) return bad_image("libpng cannot read: no memory");
  if (!run_png(work, file.size(), color, pixels)) {
    return bad_image(fmt::format("is a damaged PNG ({})", work.text));
  }
  SPEEDO_TRY(work.checked);
  if (color == ImageColor::kGray && work.is_wide) {
    make_wide_gray(pixels);
  } else if (color == ImageColor::kGray && pixels.channels > 1) {
    make_gray(pixels, kPngWeights);
  }
  return {};
}

}  // namespace speedo
