// Records a second that a Data layer's feed delivers with images decoded in this process and in
// parser processes, in turns in one run, and medians of the ratios: nothing else is computed, so it
// is the most that the parsers can cost. parser_cost.py says what they cost a training.
//
//   bench_parser [threads] [rounds] [part of a name]
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/decode_files.hpp"
#include "data/parser/parser_processes.hpp"
#include "support/child_processes.hpp"
#include "support/temp_dir.hpp"

namespace speedo::bench {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Of this process, and of its parsers as long as they are there.
double cpu_seconds_with_parsers() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  double sum = 0.0;
  for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
    sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  for (const pid_t parser : test::children_of(::getpid(), "speedo-parser")) {
    double nanoseconds = 0.0;
    std::ifstream("/proc/" + std::to_string(parser) + "/schedstat") >> nanoseconds;
    sum += 1e-9 * nanoseconds;
  }
  return sum;
}

// The parsers have been started before.
DecodeTimes decode(const ImageFile& file, int threads, ParserUse use) {
  const ParserProcesses parsers(ParserOptions{.use = use});
  read_all(file, threads);
  const double begin = cpu_seconds_with_parsers();
  constexpr int kPasses = 3;
  const double found = read_all(file, threads, kPasses).records_per_second;
  if ((parsers.totals().started > 0) != (use == ParserUse::kOn)) {
    std::fprintf(stderr, "the images were not decoded where they should be\n");
    std::exit(EXIT_FAILURE);
  }
  return {found, 1e6 * (cpu_seconds_with_parsers() - begin) /
                     ((1.0 + kPasses) * static_cast<double>(file.records))};
}

// Of one side, or there to here.
struct Rows {
  std::vector<double> rates, cpu;
};

void compare(const ImageFile& file, int threads, int rounds) {
  Rows here, there, ratios;
  for (int round = 0; round < rounds; ++round) {
    // Who is first changes, too.
    for (const bool in_parsers : {round % 2 != 0, round % 2 == 0}) {
      const DecodeTimes found =
          decode(file, threads, in_parsers ? ParserUse::kOn : ParserUse::kOff);
      Rows& side = in_parsers ? there : here;
      side.rates.push_back(found.records_per_second);
      side.cpu.push_back(found.cpu_us_per_record);
    }
    ratios.rates.push_back(there.rates.back() / here.rates.back());
    ratios.cpu.push_back(there.cpu.back() / here.cpu.back());
  }
  std::printf("| %s | %d | %.0f | %.0f | %.3f | %.1f | %.1f | %.3f |\n", file.name.c_str(), threads,
              median(here.rates), median(there.rates), median(ratios.rates), median(here.cpu),
              median(there.cpu), median(ratios.cpu));
  std::fflush(stdout);
}

struct Kind {
  ImageFile file;
  int side = 0;
  caffe::Datum (*make)(int side, Random& random);
};

void run(int threads, int rounds, const std::string& wanted) {
  const TempDir folder;
  const Kind kinds[] = {{{"JPEG 256x256", folder / "large", 512, 32, 227}, 256, jpeg_datum},
                        {{"PNG 256x256", folder / "png", 256, 32, 227}, 256, png_datum},
                        {{"JPEG 64x64", folder / "small", 64 * 40, 64, 56}, 64, jpeg_datum},
                        {{"PNG 32x32", folder / "tiny", 64 * 80, 64, 28}, 32, png_datum}};
  std::printf(
      "| records | threads | here, records/s | in parsers | ratio | here, CPU us a record | "
      "in parsers | ratio |\n|---|---|---|---|---|---|---|---|\n");
  for (const Kind& kind : kinds) {
    if (kind.file.name.find(wanted) == std::string::npos) continue;
    write_images(kind.file, [&](Random& random) { return kind.make(kind.side, random); });
    compare(kind.file, threads, rounds);
  }
}

}  // namespace
}  // namespace speedo::bench

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  if (threads < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: bench_parser [threads] [rounds] [part of a name]\n");
    return EXIT_FAILURE;
  }
  speedo::bench::run(threads, rounds, argc > 3 ? argv[3] : "");
  return EXIT_SUCCESS;
}
