#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <jpeglib.h>

namespace speedo {

// A JPEG of side x side pixels of `channels` values each, 1 or 3. `pixels` are those of all rows,
// or of one that all are like. `set_up` may change how libjpeg is to compress them, and how many
// rows there are.
inline std::string make_jpeg(unsigned side, int channels, std::vector<std::uint8_t> pixels,
                             const std::function<void(jpeg_compress_struct&)>& set_up) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* memory = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&encoder, &memory, &bytes);
  encoder.image_width = encoder.image_height = side;
  encoder.input_components = channels;
  encoder.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&encoder);
  set_up(encoder);
  jpeg_start_compress(&encoder, TRUE);
  const std::size_t row_bytes = std::size_t{side} * static_cast<std::size_t>(channels);
  const bool equal = pixels.size() == row_bytes;
  while (encoder.next_scanline < encoder.image_height) {
    JSAMPROW row = pixels.data() + (equal ? 0 : encoder.next_scanline * row_bytes);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  std::string file(reinterpret_cast<char*>(memory), bytes);
  std::free(memory);
  jpeg_destroy_compress(&encoder);
  return file;
}

}  // namespace speedo
