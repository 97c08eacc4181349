// Records a second that a Data layer's feed delivers with 1, 2, ... threads, in turns, the best
// pass of each: JPEGs and raw images of 256x256, cropped to 227x227 and mirrored at random, in
// batches of 32, and of MNIST's size.
//
//   bench_decode [threads at most] [rounds]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>

#include "bench/decode_files.hpp"
#include "bench/rates.hpp"
#include "support/temp_dir.hpp"

namespace speedo::bench {
namespace {

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
