#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace caffe {
class NetParameter;
}

namespace speedo {
class Backend;
}

namespace speedo::nets {

// What a net computes in two passes forward and backward, on the host and in plain order, by name:
// "loss", "values of X", "gradient of X", "gradient of parameter L/0", "statistic L/0".
using Arrays = std::map<std::string, std::vector<float>>;

// What inputs, labels and parameters are drawn from, the same for every backend.
struct Data {
  std::uint64_t seed = 0;
  // Not 0: every value is moved by up to a millionth, and the reference rounds probabilities,
  // sigmoids, tangents and means its own way, differently for each number.
  int jitter = 0;
};

// What a net is built for.
enum class Purpose {
  kLook,   // with keep_blobs: every blob that the prototxt names can be looked at
  kTrain,  // without: outputs, and inputs with their gradients
  kTest,   // without a backward pass: outputs and inputs
};

// Errors are the net's.
Result<Arrays> compute(const caffe::NetParameter& net, Backend& backend, Purpose purpose,
                       const Data& data);

// What one value of a parameter's gradient sums in both passes. Each term is rounded, which is left
// where the sum cancels, and so is each step.
struct Summed {
  double magnitudes = 0.0;
  double terms = 0.0;
};

struct Expected {
  Arrays arrays;
  std::map<std::string, Summed> summed;  // of each "gradient of parameter"
};

// Of every blob, by the reference backend's loops, without anything that a net does to be
// faster: no layer works in place, none does another's work.
Result<Expected> compute_reference(const caffe::NetParameter& net, const Data& data);

}  // namespace speedo::nets
