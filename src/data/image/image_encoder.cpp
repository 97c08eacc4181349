#include "data/image/image_encoder.hpp"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>
#include <jpeglib.h>
#include <png.h>
#include <speedo/base/assert.hpp>

#include "data/image/image_name.hpp"

namespace speedo {

namespace {

constexpr int kJpegQuality = 95;

// Rows of interleaved pixels, blue first.
std::vector<std::uint8_t> interleaved(const Record& record) {
  std::vector<std::uint8_t> pixels(record.bytes.size());
  const std::int64_t plane = record.height * record.width;
  std::size_t to = 0;
  for (std::int64_t i = 0; i < plane; ++i) {
    for (std::int64_t c = 0; c < record.channels; ++c) {
      pixels[to++] = record.bytes[static_cast<std::size_t>(c * plane + i)];
    }
  }
  return pixels;
}

Result<std::string> encode_png(const Record& record) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(record.width);
  image.height = static_cast<png_uint_32>(record.height);
  image.format = record.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_BGR;
  const std::vector<std::uint8_t> pixels = interleaved(record);
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0) {
    return Error{ErrorCode::kData, fmt::format("cannot become a PNG ({})", image.message)};
  }
  file.resize(bytes);
  return file;
}

// What a JPEG's encoder works with. libjpeg leaves its functions by a long jump where it meets an
// error, so all that owns memory lies here, with the caller.
struct JpegWriter {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr manager{};
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX] = {};
  unsigned char* memory = nullptr;
  unsigned long bytes = 0;

  ~JpegWriter() {
    jpeg_destroy_compress(&encoder);
    std::free(memory);
  }
};

void leave_jpeg_writer(j_common_ptr encoder) {
  auto* writer = static_cast<JpegWriter*>(encoder->client_data);
  encoder->err->format_message(encoder, writer->text);
  std::longjmp(writer->back, 1);
}

[[gnu::noinline]] void compress(const Record& record, std::vector<std::uint8_t>& pixels,
                                JpegWriter& writer) {
  jpeg_compress_struct& encoder = writer.encoder;
  jpeg_create_compress(&encoder);
  jpeg_mem_dest(&encoder, &writer.memory, &writer.bytes);
  encoder.image_width = static_cast<JDIMENSION>(record.width);
  encoder.image_height = static_cast<JDIMENSION>(record.height);
  encoder.input_components = static_cast<int>(record.channels);
  encoder.in_color_space = record.channels == 1 ? JCS_GRAYSCALE : JCS_EXT_BGR;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, kJpegQuality, TRUE);
  jpeg_start_compress(&encoder, TRUE);
  const auto row_bytes = static_cast<std::size_t>(record.width * record.channels);
  while (encoder.next_scanline < encoder.image_height) {
    JSAMPROW row = pixels.data() + encoder.next_scanline * row_bytes;
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
}

bool run_compress(const Record& record, std::vector<std::uint8_t>& pixels, JpegWriter& writer) {
  if (setjmp(writer.back) != 0) return false;
  compress(record, pixels, writer);
  return true;
}

Result<std::string> encode_jpeg(const Record& record) {
  JpegWriter writer;
  writer.encoder.err = jpeg_std_error(&writer.manager);
  writer.encoder.client_data = &writer;
  writer.manager.error_exit = leave_jpeg_writer;
  std::vector<std::uint8_t> pixels = interleaved(record);
  if (!run_compress(record, pixels, writer)) {
    return Error{ErrorCode::kData, fmt::format("cannot become a JPEG ({})", writer.text)};
  }
  return std::string(reinterpret_cast<char*>(writer.memory), writer.bytes);
}

}  // namespace

bool can_encode(const std::string& encoding) {
  const std::string kind = lower_case(encoding);
  return kind == "png" || kind == "jpg" || kind == "jpeg";
}

Result<std::string> encode_image(const Record& record, const std::string& encoding) {
  SPEEDO_ASSERT(static_cast<std::int64_t>(record.bytes.size()) == record.count());
  SPEEDO_ASSERT(record.channels == 1 || record.channels == 3);
  const std::string kind = lower_case(encoding);
  if (kind == "png") return encode_png(record);
  if (kind == "jpg" || kind == "jpeg") return encode_jpeg(record);
  return Error{ErrorCode::kUnsupported,
               fmt::format("cannot be encoded as '{}': png and jpg can be written", encoding)};
}

}  // namespace speedo
