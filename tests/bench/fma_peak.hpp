#pragma once

#include <string>
#include <vector>

namespace speedo::bench {

// The most single-precision multiply-adds that threads can do on registers, two operations each.
struct FmaPeak {
  std::string isa;  // Highway's name of the instruction set
  double gflops = 0.0;
};
// For each instruction set that this machine has, the best first.
std::vector<FmaPeak> measure_fma_peaks(int threads);

}  // namespace speedo::bench
