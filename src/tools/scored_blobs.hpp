#pragma once

#include <optional>
#include <string>

#include <speedo/base/result.hpp>

namespace caffe {
class NetParameter;
class NetState;
}  // namespace caffe

namespace speedo {

// What a classifier answers and what would be right, as blobs of a net.
struct ScoredBlobs {
  std::string scores, labels;
  int axis = 1;                // of the scores: the classes
  std::optional<int> ignored;  // a label that does not count
  bool has_probabilities = false;
};

// Those of the net in that state: what its first Accuracy layer compares, else its first
// SoftmaxWithLoss. `named`: "SCORES,LABELS", or empty. Error: kConfig if there is no such layer, or
// blob, naming the remedy.
Result<ScoredBlobs> find_scored_blobs(const caffe::NetParameter& net, const caffe::NetState& state,
                                      const std::string& named);

}  // namespace speedo
