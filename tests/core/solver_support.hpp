#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/random.hpp>
#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/device_values.hpp"
#include "support/kernels.hpp"

// What the solver's tests share: data made by a formula, a small net over them, and solvers of it.
namespace speedo::test {

// Three noisy classes of 12 numbers, in an order that changes every epoch. A source named "broken"
// gives NaN from batch 3 on, one named "broken once" in batch 3 alone.
class GeneratedFeed final : public BatchFeed {
 public:
  GeneratedFeed(std::int64_t batch, std::string source, std::shared_ptr<int> reads)
      : batch_(batch), source_(std::move(source)), reads_(std::move(reads)) {
    shapes_ = {{batch, 12}, {batch}};
    data_.resize(static_cast<std::size_t>(batch * 12));
    labels_.resize(static_cast<std::size_t>(batch));
  }

  const std::vector<Shape>& shapes() const override { return shapes_; }
  std::uint64_t record_count() const override { return kRecords; }
  void will_need(std::uint64_t /*batch*/) override {}
  // Each has to be waited for.
  bool is_ready(std::uint64_t /*batch*/) override { return false; }

  Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override {
    ++*reads_;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const std::uint64_t place = batch * static_cast<std::uint64_t>(batch_) + i;
      const std::uint64_t epoch = place / kRecords;
      const std::uint64_t record = (place * 7 + epoch * 13) % kRecords;
      Random random = Random::derive(5, {record});
      labels_[i] = static_cast<float>(record % 3);
      for (std::size_t k = 0; k < 12; ++k) {
        const float centre = k % 3 == record % 3 ? 1.0F : 0.0F;
        data_[i * 12 + k] = random.gaussian(centre, 0.3F);
      }
    }
    const bool broken = (source_ == "broken" && batch >= 3) ||
                        (source_ == "broken once" && batch == 3);
    if (broken) data_[0] = std::nanf("");
    return std::vector<std::span<const float>>{data_, labels_};
  }

 private:
  static constexpr std::uint64_t kRecords = 60;
  std::int64_t batch_;
  std::string source_;
  std::shared_ptr<int> reads_;
  std::vector<Shape> shapes_;
  std::vector<float> data_, labels_;
};

class GeneratedFeeds final : public FeedFactory {
 public:
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions& options) override {
    bases.push_back(options.base);
    const caffe::DataParameter& data = layer.data_param();
    return std::unique_ptr<BatchFeed>(
        std::make_unique<GeneratedFeed>(data.batch_size(), data.source(), reads_));
  }
  // As if one had to wait a millisecond for every batch.
  FeedTotals totals() const override { return {std::chrono::milliseconds(*reads_), 0}; }

  std::vector<std::filesystem::path> bases;  // of the data layers opened so far

 private:
  const std::shared_ptr<int> reads_ = std::make_shared<int>(0);
};

inline std::string net_text(const std::string& source = "generated") {
  return R"(name: "small"
    layer { name: "data" type: "Data" top: "data" top: "label"
            data_param { source: ")" +
         source + R"(" batch_size: 8 } }
    layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
            param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
            inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
    layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
    layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" }
    layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
            inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
            include { phase: TEST } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" } )";
}

inline caffe::SolverParameter parse_solver(const std::string& text) {
  Result<caffe::SolverParameter> solver = parse_solver_prototxt(text, "solver.prototxt");
  INFO((solver ? "" : solver.error().message));
  REQUIRE(solver.has_value());
  return std::move(solver).value();
}

inline const std::string kSolverText =
    "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.001 random_seed: 3 "
    "max_iter: 20 ";

// A solver of the small net; the fields of `extra` replace its own.
inline caffe::SolverParameter small_solver(const std::string& extra = "",
                                           const std::string& source = "generated") {
  caffe::SolverParameter solver =
      parse_solver(kSolverText + " net_param { " + net_text(source) + " }");
  if (!extra.empty()) solver.MergeFrom(parse_solver(extra));
  return solver;
}

struct World {
  World() { set_log_level(LogLevel::kNothing); }

  std::unique_ptr<Backend> backend = test::make_backend(1);
  GeneratedFeeds feeds;

  SolverOptions options(const std::filesystem::path& base = {}) {
    return {.backend = backend.get(), .feeds = &feeds, .base = base};
  }
  std::unique_ptr<Solver> solver(const caffe::SolverParameter& message, Solver::Hooks hooks = {}) {
    auto made = Solver::create(message, options(), std::move(hooks));
    INFO((made ? "" : made.error().message));
    REQUIRE(made.has_value());
    return std::move(made).value();
  }
};

inline std::vector<float> weights_of(Solver& solver) {
  const Arena& weights = solver.net().weights();
  return values_at(solver.net().backend().device(), weights.data(), weights.size());
}

}  // namespace speedo::test
