#include "bench/decode_files.hpp"

#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <google/protobuf/text_format.h>
#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "data/feed_factory.hpp"
#include "data/image/image_encoder.hpp"
#include "data/jpeg_support.hpp"

namespace speedo::bench {

namespace {

// Waves with noise on them: compressed, as large as a photograph.
std::vector<std::uint8_t> picture(int side, int channels, Random& random) {
  std::vector<std::uint8_t> pixels;
  const float a = random.uniform(0.02F, 0.1F), b = random.uniform(0.02F, 0.1F);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side * channels; ++x) {
      const float wave = std::sin(a * static_cast<float>(x)) * std::cos(b * static_cast<float>(y));
      const float value = 128.0F + 90.0F * wave + random.uniform(-25.0F, 25.0F);
      pixels.push_back(static_cast<std::uint8_t>(value));
    }
  }
  return pixels;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

[[noreturn]] void fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(EXIT_FAILURE);
}

}  // namespace

caffe::Datum raw_datum(int side, int channels, Random& random) {
  caffe::Datum datum;
  datum.set_channels(channels);
  datum.set_height(side);
  datum.set_width(side);
  const std::vector<std::uint8_t> pixels = picture(side, channels, random);
  datum.set_data(pixels.data(), pixels.size());
  return datum;
}

caffe::Datum jpeg_datum(int side, Random& random) {
  caffe::Datum datum;
  datum.set_encoded(true);
  datum.set_data(
      make_jpeg(static_cast<unsigned>(side), 3, picture(side, 3, random),
                [](jpeg_compress_struct& encoder) { jpeg_set_quality(&encoder, 85, TRUE); }));
  return datum;
}

caffe::Datum png_datum(int side, Random& random) {
  caffe::Datum datum;
  datum.set_encoded(true);
  Record record;
  record.channels = 3;
  record.height = record.width = side;
  record.bytes = picture(side, 3, random);
  auto file = encode_image(record, "png");
  if (!file) fail(file.error());
  datum.set_data(*std::move(file));
  return datum;
}

DecodeTimes read_all(const ImageFile& file, int threads, int passes) {
  caffe::LayerParameter layer;
  google::protobuf::TextFormat::ParseFromString(
      "name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: '" +
          file.path.string() + "' batch_size: " + std::to_string(file.batch_size) +
          " } transform_param { mirror: true crop_size: " + std::to_string(file.crop) + " }",
      &layer);
  FeedOptions options;
  options.top_count = 2;
  auto feed = make_feed_factory(threads)->open(layer, options);
  if (!feed) fail(feed.error());
  const std::uint64_t batches = file.records / static_cast<std::uint64_t>(file.batch_size);
  Instant begin{0};
  double cpu_begin = 0.0;
  // The first round fills memory and caches.
  const std::uint64_t measured = batches * static_cast<std::uint64_t>(passes);
  for (std::uint64_t batch = 0; batch < batches + measured; ++batch) {
    if (batch == batches) {
      begin = steady_clock().now();
      cpu_begin = cpu_seconds();
    }
    for (std::uint64_t i = 0; i < kPrefetchBatches; ++i) (*feed)->will_need(batch + i);
    if (auto read = (*feed)->read(batch); !read) fail(read.error());
  }
  const auto records = static_cast<double>(measured) * file.batch_size;
  const double seconds = std::chrono::duration<double>(steady_clock().now() - begin).count();
  return {records / seconds, 1e6 * (cpu_seconds() - cpu_begin) / records};
}

}  // namespace speedo::bench
