#pragma once

#include <vector>

#include <speedo/core/layer.hpp>

namespace speedo {

// The places of the top_k largest values along `axis`, largest first, or their values
// (out_max_val). Without an axis, places among all values of an item, and with out_max_val the
// values beside them. Of equal values that with the larger place comes first. Computed on the host.
class ArgMaxLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allow_force_backward(int /*bottom*/) const override { return false; }
  bool can_propagate(int /*bottom*/) const override { return false; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }

 private:
  struct Candidate {
    float value;
    std::int64_t place;
  };
  static bool precedes(const Candidate& a, const Candidate& b);
  void rank(const float* values);
  void rank_first(const float* values);
  void write(std::int64_t row, std::int64_t column, std::int64_t rank, const Candidate& one);

  std::int64_t outer_ = 0, places_ = 0, inner_ = 0, top_k_ = 1;
  bool has_axis_ = false, gives_values_ = false;
  std::vector<Candidate> candidates_;   // of one column, or the best of each
  std::vector<float> values_, result_;  // on the host
};

}  // namespace speedo
