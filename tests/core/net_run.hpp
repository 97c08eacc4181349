#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <speedo/core/net.hpp>

namespace speedo {

// What a net computes in a few passes, on the host and in plain order.
struct NetRun {
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> values, gradients;  // by blob, after the last pass
  std::vector<float> parameter_gradients;
  Net::Memory memory;
  int reorders = 0, fused = 0;
};

// The values of a run: those of another number are others, and those of a jitter (if it is not 0)
// lie beside those without one.
struct Draw {
  std::uint64_t number = 0, jitter = 0;
};

inline constexpr int kPasses = 2;

// Builds the net and runs it `passes` times on inputs that depend on their names and the draw only;
// an input "label" gets whole numbers below 3. Blobs are read if they are kept.
NetRun run_net(const std::string& text, Backend& backend, NetOptions options, int passes = kPasses,
               const Draw& draw = {});

// |a - b| <= 1e-5 times the largest of b.
void check_close(const std::string& what, const std::vector<float>& a, const std::vector<float>& b);

// Runs the net in plain order, in the other layouts, and on the CPU's backend in the one that it
// prefers, and checks that the arrays of each run are those of the first within 1e-5 of an array's
// largest value; gradients have the largest of them all as their measure, as some are sums that
// cancel. A draw in which rounding decides is taken for another one. Returns how often the
// reference backend's nets reorder, of each of the other layouts.
std::vector<int> check_in_all_layouts(const std::string& text, const NetOptions& options);

// Pieces of prototxt.
std::string conv(const std::string& name, const std::string& bottom, int outputs, int kernel = 3);
std::string in_place(const std::string& type, const std::string& blob);
std::string layer(const std::string& name, const std::string& type,
                  const std::vector<std::string>& bottoms, const std::string& options = "");

}  // namespace speedo
