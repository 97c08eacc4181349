// What this machine can do: the limits that layers and nets are measured against.
//
//   ceilings [--threads T] [--json] [fma] [sgemm] [memory]     (all three by default)
//
// fma: multiply-adds on registers by instruction set, GFLOP/s. sgemm: a product of 1024 x 1024 x
// 1024 by the CPU backend. memory: triad and memcpy on arrays of 256 MiB, GB/s.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "bench/fma_peak.hpp"
#include "bench/rates.hpp"
#include "measure/gemm_rate.hpp"

namespace speedo::bench {
namespace {

constexpr double kGemmSeconds = 1.0;

struct Options {
  int threads = 1;
  bool json = false;
  std::set<std::string> parts;
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "ceilings: %s\n", message.c_str());
  std::exit(2);
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      options.json = true;
    } else if (word == "--threads" && i + 1 < argc) {
      options.threads = std::atoi(argv[++i]);
    } else if (word == "fma" || word == "sgemm" || word == "memory") {
      options.parts.insert(word);
    } else {
      fail("takes --threads T, --json, fma, sgemm and memory, not '" + word + "'");
    }
  }
  const int most = static_cast<int>(std::thread::hardware_concurrency());
  if (options.threads < 1 || options.threads > std::max(most, 1)) {
    fail("--threads takes a number from 1 to " + std::to_string(std::max(most, 1)));
  }
  if (options.parts.empty()) options.parts = {"fma", "sgemm", "memory"};
  return options;
}

double gemm_rate(int threads) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(threads);
  const Result<double> rate = measure_gemm_rate(*backend, kGemmSeconds);
  if (!rate) fail(rate.error().message);
  return *rate;
}

nlohmann::ordered_json measure(const Options& options) {
  nlohmann::ordered_json found;
  found["threads"] = options.threads;
  if (options.parts.contains("fma")) {
    for (const FmaPeak& peak : measure_fma_peaks(options.threads)) {
      found["fma_gflops"][peak.isa] = peak.gflops;
    }
  }
  if (options.parts.contains("sgemm")) found["sgemm_gflops"] = gemm_rate(options.threads);
  if (options.parts.contains("memory")) {
    const MemoryRates memory = measure_memory(options.threads);
    found["triad_gb_per_s"] = memory.triad;
    found["memcpy_gb_per_s"] = memory.copy;
  }
  return found;
}

void print_text(const nlohmann::ordered_json& found) {
  for (const auto& [name, value] : found.items()) {
    if (!value.is_object()) {
      std::printf("%-16s %8.1f\n", name.c_str(), value.get<double>());
      continue;
    }
    for (const auto& [isa, rate] : value.items()) {
      std::printf("%-16s %8.1f  %s\n", name.c_str(), rate.get<double>(), isa.c_str());
    }
  }
}

}  // namespace
}  // namespace speedo::bench

int main(int argc, char** argv) {
  const speedo::bench::Options options = speedo::bench::read_options(argc, argv);
  const auto found = speedo::bench::measure(options);
  if (options.json) {
    std::printf("%s\n", found.dump().c_str());
  } else {
    speedo::bench::print_text(found);
  }
  return 0;
}
