#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <tiffio.h>

#include "base/shown_text.hpp"
#include "data/claimed_size.hpp"
#include "data/image/decoded_pixels.hpp"

namespace speedo {

namespace {

// The most that libtiff may take at once beside the pixels: a strip of rows.
constexpr tmsize_t kTiffBytesMax = tmsize_t{256} << 20U;

// A file in memory, and what libtiff had to say of it.
struct TiffWork {
  std::span<const std::byte> file;
  std::uint64_t offset = 0;
  char text[128] = {};
};

tmsize_t read_tiff(thandle_t handle, void* target, tmsize_t count) {
  auto* work = static_cast<TiffWork*>(handle);
  if (work->offset >= work->file.size()) return 0;
  const auto taken =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(count), work->file.size() - work->offset);
  std::memcpy(target, work->file.data() + work->offset, taken);
  work->offset += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  auto* work = static_cast<TiffWork*>(handle);
  if (whence == SEEK_CUR) offset += work->offset;
  if (whence == SEEK_END) offset += work->file.size();
  work->offset = offset;
  return offset;
}

int close_tiff(thandle_t) { return 0; }
toff_t size_of_tiff(thandle_t handle) { return static_cast<TiffWork*>(handle)->file.size(); }

int keep_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  auto* work = static_cast<TiffWork*>(user);
  if (work->text[0] == '\0') std::vsnprintf(work->text, sizeof(work->text), format, arguments);
  return 1;
}

int keep_quiet(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, CloseTiff>;

Tiff open_tiff(TiffWork& work) {
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, kTiffBytesMax);
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, &work);
  TIFFOpenOptionsSetWarningHandlerExtR(options, keep_quiet, &work);
  Tiff tiff(TIFFClientOpenExt("image", "rm", &work, read_tiff, write_nothing, seek_tiff, close_tiff,
                              size_of_tiff, nullptr, nullptr, options));
  TIFFOpenOptionsFree(options);
  return tiff;
}

std::uint16_t field(TIFF* tiff, std::uint32_t tag) {
  std::uint16_t value = 0;
  TIFFGetFieldDefaulted(tiff, tag, &value);
  return value;
}

std::int64_t channels_of(TIFF* tiff) {
  const std::uint16_t kind = field(tiff, TIFFTAG_PHOTOMETRIC);
  if (kind == PHOTOMETRIC_MINISBLACK || kind == PHOTOMETRIC_MINISWHITE) return 1;
  return kind == PHOTOMETRIC_RGB && field(tiff, TIFFTAG_SAMPLESPERPIXEL) == 4 ? 4 : 3;
}

// Where the next pixel of a row, and the next row, lie in the raster.
struct RasterSteps {
  std::int64_t pixel = 0, row = 0;
};

// libtiff's pixels are red, green, blue, alpha.
void set_pixels(const std::vector<std::uint32_t>& raster, RasterSteps steps,
                DecodedPixels& pixels) {
  std::uint8_t* target = pixels.values.data();
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::uint32_t* from = raster.data() + y * steps.row;
    for (std::int64_t x = 0; x < pixels.width; ++x, from += steps.pixel) {
      const std::uint32_t value = *from;
      const std::uint32_t colors[4] = {TIFFGetB(value), TIFFGetG(value), TIFFGetR(value),
                                       TIFFGetA(value)};
      for (std::int64_t c = 0; c < pixels.channels; ++c) {
        *target++ = static_cast<std::uint8_t>(colors[c]);
      }
    }
  }
}

// The pixels upright, as OpenCV makes them whatever its flags. libtiff mirrors rows and columns,
// but makes no columns of rows: it takes the orientations from LEFTTOP on for the first four. Of
// two of these the other axis is to be mirrored before rows become columns.
bool read_upright(TIFF* tiff, std::uint32_t height, std::uint32_t width, DecodedPixels& pixels) {
  const std::uint16_t orientation = field(tiff, TIFFTAG_ORIENTATION);
  const bool turned = orientation >= ORIENTATION_LEFTTOP && orientation <= ORIENTATION_LEFTBOT;
  const bool mirrors_other = orientation == ORIENTATION_RIGHTTOP ||
                             orientation == ORIENTATION_LEFTBOT;
  constexpr int kStopAtErrors = 1;
  std::vector<std::uint32_t> raster(std::size_t{height} * width);
  if (TIFFReadRGBAImageOriented(tiff, width, height, raster.data(),
                                mirrors_other ? ORIENTATION_BOTRIGHT : ORIENTATION_TOPLEFT,
                                kStopAtErrors) == 0) {
    return false;
  }
  if (turned) {
    pixels.resize(channels_of(tiff), width, height);
    set_pixels(raster, {width, 1}, pixels);
  } else {
    pixels.resize(channels_of(tiff), height, width);
    set_pixels(raster, {1, width}, pixels);
  }
  return true;
}

}  // namespace

Result<void> decode_tiff(std::span<const std::byte> file, DecodedPixels& pixels) {
  TiffWork work{file, 0, {}};
  const Tiff tiff = open_tiff(work);
  const auto damaged = [&] { return bad_image(fmt::format("is a damaged TIFF ({})", work.text)); };
  std::uint32_t height = 0, width = 0;
  if (!tiff || TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0) {
    return damaged();
  }
  const std::uint64_t count = std::uint64_t{height} * width;
  SPEEDO_TRY(check_image(
      {height, width, count, saturating_product(file.size(), kOtherFilterRatioMax), file.size()}));
  char why[1024] = {};
  if (TIFFRGBAImageOK(tiff.get(), why) == 0) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("holds a TIFF of a kind that is not read ({}); convert it to PNG",
                    shown_text(why))};
  }
  if (!read_upright(tiff.get(), height, width, pixels) || work.text[0] != '\0') return damaged();
  return {};
}

}  // namespace speedo
