#include <csetjmp>
#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <jpeglib.h>

#include <jerror.h>

#include "data/claimed_size.hpp"
#include "data/image/decoded_pixels.hpp"
#include "data/image/exif_orientation.hpp"

namespace speedo {

namespace {

// More than any encoder writes; each costs a pass over the whole image, for a few bytes.
constexpr int kScansMax = 500;

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kMarkerBytesMax = 0xFFFF;

struct JpegErrors {
  jpeg_error_mgr manager;
  jpeg_progress_mgr progress{};
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

void leave_jpeg(j_common_ptr decoder) {
  auto* errors = reinterpret_cast<JpegErrors*>(decoder->err);
  decoder->err->format_message(decoder, errors->text);
  std::longjmp(errors->back, 1);
}

void limit_scans(j_common_ptr decoder) {
  if (reinterpret_cast<j_decompress_ptr>(decoder)->input_scan_number <= kScansMax) return;
  auto* errors = reinterpret_cast<JpegErrors*>(decoder->err);
  std::snprintf(errors->text, sizeof(errors->text), "it has more than %d scans", kScansMax);
  std::longjmp(errors->back, 1);
}

// Bytes too many, which cameras leave; what a marker says that no pixel depends on; and the end of
// the file where a last marker should be. Where rows are missing before it, that is told of by
// another warning, but not of scans.
bool is_harmless(j_common_ptr decoder) {
  const auto* image = reinterpret_cast<j_decompress_ptr>(decoder);
  switch (decoder->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM: return true;
    case JWRN_JPEG_EOF: {
      const bool has_one_scan = image->comps_in_scan == image->num_components;
      return has_one_scan && !image->progressive_mode && !image->arith_code;
    }
    default: return false;
  }
}

// Any other warning means damaged data, of which libjpeg would make up the missing part.
void refuse_warning(j_common_ptr decoder, int level) {
  if (level < 0 && !is_harmless(decoder)) leave_jpeg(decoder);
}

// A block of 8x8 values takes a bit at least, or next to nothing if its coding is arithmetic.
Result<void> check_jpeg(const jpeg_decompress_struct& decoder, std::uint64_t file_bytes) {
  std::uint64_t blocks = 0;
  for (int i = 0; i < decoder.num_components; ++i) {
    const jpeg_component_info& component = decoder.comp_info[i];
    blocks += std::uint64_t{component.width_in_blocks} * component.height_in_blocks;
  }
  constexpr std::uint64_t kBlockBytes = 64, kBlocksPerByteMax = 8;
  return check_image({decoder.image_height, decoder.image_width, blocks * kBlockBytes,
                      saturating_product(file_bytes, kBlocksPerByteMax * kBlockBytes), file_bytes});
}

J_COLOR_SPACE wanted_space(const jpeg_decompress_struct& decoder, ImageColor color) {
  constexpr int kInks = 4;
  if (decoder.num_components == kInks) return JCS_CMYK;
  const bool gray =
      decoder.num_components == 1 ? color != ImageColor::kColor : color == ImageColor::kGray;
  return gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
}

int orientation_in(const jpeg_decompress_struct& decoder) {
  for (const jpeg_marker_struct* each = decoder.marker_list; each != nullptr; each = each->next) {
    if (each->marker != kExifMarker) continue;
    const auto orientation =
        exif_orientation(std::as_bytes(std::span(each->data, each->data_length)));
    if (orientation) return *orientation;
  }
  return 1;
}

struct JpegResult {
  DecodedPixels& pixels;
  Result<void> checked;
};

// libjpeg leaves this function by a long jump where it meets an error, so nothing here may own
// memory while it is called: all that does is the caller's.
[[gnu::noinline]] void decompress(std::span<const std::byte> file, ImageColor color,
                                  jpeg_decompress_struct& decoder, JpegResult& result) {
  jpeg_create_decompress(&decoder);
  decoder.progress = &reinterpret_cast<JpegErrors*>(decoder.err)->progress;
  decoder.progress->progress_monitor = limit_scans;
  jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_save_markers(&decoder, kExifMarker, kMarkerBytesMax);
  jpeg_read_header(&decoder, TRUE);
  result.pixels.orientation = orientation_in(decoder);
  decoder.out_color_space = wanted_space(decoder, color);
  result.checked = check_jpeg(decoder, file.size());
  if (!result.checked) return;
  jpeg_start_decompress(&decoder);
  result.pixels.resize(decoder.output_components, decoder.output_height, decoder.output_width);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = result.pixels.row(decoder.output_scanline);
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
}

// Whether libjpeg met no error. Its long jump ends here, so no variable of this function, nor of
// one inlined into it, may change behind setjmp().
bool run_jpeg(std::span<const std::byte> file, ImageColor color, jpeg_decompress_struct& decoder,
              JpegErrors& errors, JpegResult& result) {
  if (setjmp(errors.back) != 0) return false;
  decompress(file, color, decoder, result);
  return true;
}

// Inks, which Adobe's programs store as what they leave of the light.
void inks_to_colors(DecodedPixels& pixels) {
  const std::size_t count = pixels.values.size() / 4;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* inks = pixels.values.data() + 4 * i;
    const int black = inks[3];
    std::uint8_t colors[3];
    for (int c = 0; c < 3; ++c) {
      colors[c] = static_cast<std::uint8_t>(black - ((255 - inks[2 - c]) * black >> 8));
    }
    for (std::size_t c = 0; c < 3; ++c) pixels.values[3 * i + c] = colors[c];
  }
  pixels.resize(3, pixels.height, pixels.width);
}

}  // namespace

Result<void> decode_jpeg(std::span<const std::byte> file, ImageColor color, DecodedPixels& pixels) {
  JpegErrors errors{};
  jpeg_decompress_struct decoder{};
  decoder.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave_jpeg;
  errors.manager.emit_message = refuse_warning;
  JpegResult result{pixels, {}};
  const bool read = run_jpeg(file, color, decoder, errors, result);
  const bool inks = read && decoder.out_color_space == JCS_CMYK;
  jpeg_destroy_decompress(&decoder);
  if (!read) return bad_image(fmt::format("is a damaged JPEG ({})", errors.text));
  SPEEDO_TRY(result.checked);
  if (inks) inks_to_colors(pixels);
  return {};
}

}  // namespace speedo
