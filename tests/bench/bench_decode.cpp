// Records a second that a Data layer's feed delivers with 1, 2, ... threads, in turns, the best
// pass of each: JPEGs and raw images of 256x256, cropped to 227x227 and mirrored at random, in
// batches of 32, and of MNIST's size.
//
//   bench_decode [threads at most] [rounds]
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <google/protobuf/text_format.h>
#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/random.hpp>

#include "bench/rates.hpp"
#include "caffe.pb.h"
#include "data/datumfile_support.hpp"
#include "data/feed_factory.hpp"
#include "data/jpeg_support.hpp"
#include "support/temp_dir.hpp"

namespace speedo::bench {
namespace {

// A file of images, and how a net reads it.
struct ImageFile {
  std::string name;
  std::filesystem::path path;
  std::uint64_t records = 0;
  int batch_size = 0, crop = 0;
};

// What one pass over a file took.
struct DecodeTimes {
  double records_per_second = 0.0;
  double cpu_us_per_record = 0.0;
};

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

template <class Make>
void write_images(const ImageFile& file, Make make) {
  std::ofstream stream(file.path, std::ios::binary);
  Random random(1);
  for (std::uint64_t i = 0; i < file.records; ++i) {
    stream << record_text(std::to_string(i), make(random).SerializeAsString());
  }
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

DecodeTimes read_all(const ImageFile& file, int threads) {
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
  for (std::uint64_t batch = 0; batch < 2 * batches; ++batch) {
    if (batch == batches) {
      begin = steady_clock().now();
      cpu_begin = cpu_seconds();
    }
    for (std::uint64_t i = 0; i < kPrefetchBatches; ++i) (*feed)->will_need(batch + i);
    if (auto read = (*feed)->read(batch); !read) fail(read.error());
  }
  const auto records = static_cast<double>(batches) * file.batch_size;
  const double seconds = std::chrono::duration<double>(steady_clock().now() - begin).count();
  return {records / seconds, 1e6 * (cpu_seconds() - cpu_begin) / records};
}

// Other programs on the machine only make a pass slower.
DecodeTimes best(const std::vector<DecodeTimes>& times) {
  return *std::max_element(times.begin(), times.end(),
                           [](const DecodeTimes& a, const DecodeTimes& b) {
                             return a.records_per_second < b.records_per_second;
                           });
}

void compare(const ImageFile& file, int threads_max, int rounds) {
  std::vector<std::vector<DecodeTimes>> times(static_cast<std::size_t>(threads_max) + 1);
  for (int round = 0; round < rounds; ++round) {
    for (int threads = 1; threads <= threads_max; ++threads) {
      times[static_cast<std::size_t>(threads)].push_back(read_all(file, threads));
    }
  }
  const double one = best(times[1]).records_per_second;
  const std::uint64_t record_bytes = std::filesystem::file_size(file.path) / file.records;
  for (int threads = 1; threads <= threads_max; ++threads) {
    const DecodeTimes found = best(times[static_cast<std::size_t>(threads)]);
    std::printf("| %s, %.1f KiB | %d | %.0f | %.2f | %.1f |\n", file.name.c_str(),
                static_cast<double>(record_bytes) / 1024.0, threads, found.records_per_second,
                found.records_per_second / one, found.cpu_us_per_record);
  }
  std::fflush(stdout);
}

// What the machine has for threads that share nothing, so that what is missing can be told from
// what other programs take.
void count_only(int threads_max, int rounds) {
  constexpr std::uint64_t kSteps = 20'000'000;
  double one = 0.0;
  for (int threads = 1; threads <= threads_max; ++threads) {
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads) * 8);
    const double seconds = best_seconds(rounds, threads, [&sums](int thread) {
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < kSteps; ++i) sum = mix64(sum + i);
      sums[static_cast<std::size_t>(thread) * 8] = sum;
    });
    const double rate = static_cast<double>(kSteps) * threads / seconds;
    if (threads == 1) one = rate;
    std::printf("| counting | %d | %.0f | %.2f | |\n", threads, rate, rate / one);
  }
}

void run(int threads_max, int rounds) {
  const TempDir folder;
  const ImageFile jpegs{"JPEG 256x256", folder / "jpegs", 256, 32, 227};
  const ImageFile raw{"raw 256x256", folder / "raw", 512, 32, 227};
  const ImageFile digits{"raw 28x28", folder / "digits", 64 * 200, 64, 24};
  write_images(jpegs, [](Random& random) { return jpeg_datum(256, random); });
  write_images(raw, [](Random& random) { return raw_datum(256, 3, random); });
  write_images(digits, [](Random& random) { return raw_datum(28, 1, random); });
  std::printf("| records | threads | records/s | to one thread | CPU us a record |\n");
  std::printf("|---|---|---|---|---|\n");
  count_only(threads_max, rounds);
  for (const ImageFile& file : {jpegs, raw, digits}) compare(file, threads_max, rounds);
}

}  // namespace
}  // namespace speedo::bench

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  if (threads < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: bench_decode [threads at most] [rounds]\n");
    return EXIT_FAILURE;
  }
  speedo::bench::run(threads, rounds);
  return EXIT_SUCCESS;
}
