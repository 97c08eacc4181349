#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include <speedo/backend/layout.hpp>
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

// Builds the net and runs it `passes` times on inputs that depend on their names only; an input
// "label" gets whole numbers below 3. Blobs are read if they are kept.
NetRun run_net(const std::string& text, Backend& backend, NetOptions options, int passes = 2);

// |a - b| <= 1e-5 times the largest; of runs: of each array, and the same keys. Gradients of a run
// have the largest of them all as their measure: some are sums that cancel.
void check_close(const std::string& what, const std::vector<float>& a, const std::vector<float>& b);
void check_close(const NetRun& a, const NetRun& b);

// Layouts, beside the plain one, that a backend may prefer.
inline constexpr std::array kOtherLayouts{LayoutKind::kBlocked8, LayoutKind::kBlocked16,
                                          LayoutKind::kChannelsLast};

// Pieces of prototxt.
std::string conv(const std::string& name, const std::string& bottom, int outputs, int kernel = 3);
std::string in_place(const std::string& type, const std::string& blob);
std::string layer(const std::string& name, const std::string& type,
                  const std::vector<std::string>& bottoms, const std::string& options = "");

}  // namespace speedo
