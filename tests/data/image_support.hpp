#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tiffio.h>
#include <webp/encode.h>

#include <png.h>

#include "data_support.hpp"

namespace speedo {

// Two rows of three pixels: red, green, blue.
inline const std::vector<std::uint8_t> kPixels = {10, 20,  30,  40,  50,  60,  70,  80,  90,
                                                  11, 121, 131, 141, 151, 161, 171, 181, 255};

// Files of them.
inline std::string webp_of(const std::vector<std::uint8_t>& pixels = kPixels) {
  std::uint8_t* memory = nullptr;
  const std::size_t bytes = WebPEncodeLosslessRGB(pixels.data(), 3, 2, 9, &memory);
  REQUIRE(bytes > 0);
  std::string file(reinterpret_cast<char*>(memory), bytes);
  WebPFree(memory);
  return file;
}

inline std::string tiff_of(const TempDir& folder, std::uint16_t packing,
                           std::uint16_t orientation = ORIENTATION_TOPLEFT) {
  const std::string path = (folder / "a.tif").string();
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  REQUIRE(tiff != nullptr);
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 3);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 2);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, packing);
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, orientation);
  std::vector<std::uint8_t> pixels = kPixels;
  for (std::uint32_t y = 0; y < 2; ++y) TIFFWriteScanline(tiff, pixels.data() + 9 * y, y, 0);
  TIFFClose(tiff);
  return read_bytes(path);
}

// A PNG of 3 x 2 pixels of 16 bits with a gamma, or with alpha.
inline std::string png_file(int kind, int bits, const std::vector<std::uint8_t>& pixels,
                            int channels) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp writer, png_bytep bytes, png_size_t count) {
        static_cast<std::string*>(png_get_io_ptr(writer))
            ->append(reinterpret_cast<char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, 3, 2, bits, kind, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_gAMA(png, info, 1.0);
  png_write_info(png, info);
  std::vector<std::uint8_t> copy = pixels;
  const std::size_t row_bytes = static_cast<std::size_t>(3 * channels * bits / 8);
  for (std::size_t y = 0; y < 2; ++y) png_write_row(png, copy.data() + y * row_bytes);
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

}  // namespace speedo
