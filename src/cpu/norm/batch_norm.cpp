// Statistics run over pieces of the array, each small enough to be read twice from the cache: its
// mean, then the squares of the differences. Pieces are the same for any number of threads and are
// merged in order.

#include "cpu/norm/batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <speedo/base/assert.hpp>

#include "cpu/elementwise/channels.hpp"
#include "cpu/isa.hpp"
#include "cpu/norm/batch_norm_kernels.hpp"

namespace speedo::cpu {
namespace {

constexpr std::int64_t kChunkFloats = 4096;   // read twice from the first-level cache
constexpr std::int64_t kChunkRowsMin = 32;    // else merging takes longer than adding
constexpr std::int64_t kPieceFloats = 65536;  // one thread's at a time
constexpr std::int64_t kNormFloats = 16384;  // that make it worth waking another thread
constexpr std::int64_t kSlack = 16;           // floats that a whole vector may read beyond an array

class VectorBatchNorm final : public BatchNorm {
 public:
  VectorBatchNorm(const BatchNormShape& shape, ThreadPool& pool, Scratch& scratch)
      : shape_(shape),
        pool_(pool),
        scratch_(scratch),
        matrices_(ChannelView{{shape.batch, shape.channels, shape.spatial}, shape.layout}),
        chunk_rows_(std::max(kChunkRowsMin, kChunkFloats / matrices_.block)),
        piece_rows_(std::max<std::int64_t>(1, kPieceFloats / (chunk_rows_ * matrices_.block)) *
                    chunk_rows_),
        pieces_per_matrix_((matrices_.rows + piece_rows_ - 1) / piece_rows_) {
    const auto padded = static_cast<std::size_t>(matrices_.blocks * matrices_.block + kSlack);
    for (std::vector<float>* values : {&mean_, &factor_, &offset_, &slope_, &shift_}) {
      values->assign(padded, 0.0F);
    }
    scratch_.reserve(0, 2 * 2 * pieces() * matrices_.block);  // two doubles a channel and piece
  }

  OperationInfo info() const override {
    return {.kernel = std::string(name(cpu_isa())),
            .workspace_bytes = static_cast<std::int64_t>(5 * mean_.size() * sizeof(float))};
  }

  void forward(const float* src, const float* gamma, const float* beta, float* mean,
               float* variance, float* dst) override {
    split_pieces([&](std::int64_t i, std::int64_t /*k*/, std::int64_t at, const NormRows& rows) {
      norm_moments(rows, src + at, sums(i), products(i));
    });
    for (std::int64_t k = 0; k < matrices_.blocks; ++k) {
      double count = 0.0;
      const std::int64_t first = piece(0, k, 0);
      for_each_piece_of(k, [&](std::int64_t i, std::int64_t rows) {
        if (i != first) {
          norm_merge(matrices_.block, count, {static_cast<double>(rows), sums(i), products(i)},
                     sums(first), products(first));
        }
        count += static_cast<double>(rows);
      });
      for (std::int64_t j = 0; j < matrices_.used(k); ++j) {
        mean[k * matrices_.block + j] = static_cast<float>(sums(first)[j]);
        variance[k * matrices_.block + j] = static_cast<float>(products(first)[j] / count);
      }
    }
    normalize(src, {mean, variance, gamma, beta}, dst);
  }

  void forward_fixed(const float* src, const float* mean, const float* variance, const float* gamma,
                     const float* beta, float* dst) override {
    SPEEDO_ASSERT(shape_.is_fixed);
    normalize(src, {mean, variance, gamma, beta}, dst);
  }

  void backward(const BatchNormGradient& g) override {
    SPEEDO_ASSERT(shape_.trains_gamma || g.gamma_grad == nullptr);
    set_coefficients(g.mean, g.variance, g.gamma);  // offset_ is the forward pass's
    const BackwardReads reads = batch_norm_reads(shape_);
    // Without src, sums of anything else: what they are for is not asked for.
    const float* values = reads.src ? g.src : g.dst_grad;
    const auto dst_at = [&](std::int64_t at) { return reads.dst ? g.dst + at : nullptr; };
    std::fill(slope_.begin(), slope_.end(), 0.0F);
    std::fill(shift_.begin(), shift_.end(), 0.0F);
    if (!shape_.is_fixed || g.gamma_grad != nullptr || g.beta_grad != nullptr) {
      split_pieces([&](std::int64_t i, std::int64_t k, std::int64_t first, const NormRows& rows) {
        norm_gradient_sums(rows, coefficients(k),
                           {values + first, dst_at(first), g.dst_grad + first}, sums(i),
                           products(i));
      });
      add_gradient_sums(g.variance, g.gamma_grad, g.beta_grad);
    }
    // With fixed statistics the values do not matter.
    if (shape_.is_fixed) values = g.dst_grad;
    matrices_.split_rows(pool_, [&](std::int64_t k, std::int64_t first, std::int64_t rows) {
      const std::int64_t c = k * matrices_.block;
      norm_backward(norm_rows(rows), coefficients(k), {&at(slope_, c), &at(shift_, c)},
                    {values + first, dst_at(first), g.dst_grad + first}, g.src_grad + first);
    });
  }

 private:
  struct Factors {
    const float* mean;
    const float* variance;
    const float* gamma;
    const float* beta;
  };

  void normalize(const float* src, const Factors& factors, float* dst) {
    set_coefficients(factors.mean, factors.variance, factors.gamma);
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      at(offset_, c) = factors.beta == nullptr ? 0.0F : factors.beta[c];
    }
    matrices_.split_rows(pool_, [&](std::int64_t k, std::int64_t first, std::int64_t rows) {
      norm_forward(norm_rows(rows), coefficients(k), src + first, dst + first);
    });
  }

  static float& at(std::vector<float>& values, std::int64_t c) {
    return values[static_cast<std::size_t>(c)];
  }
  // Of block k.
  ChannelAffine coefficients(std::int64_t k) {
    const std::int64_t c = k * matrices_.block;
    return {&at(mean_, c), &at(factor_, c), &at(offset_, c)};
  }

  NormRows norm_rows(std::int64_t rows) const {
    return {rows, matrices_.block, chunk_rows_, shape_.activation.has_value(),
            shape_.activation ? shape_.activation->a : 0.0F};
  }

  std::int64_t pieces() const { return matrices_.outer * matrices_.blocks * pieces_per_matrix_; }
  std::int64_t piece(std::int64_t outer, std::int64_t k, std::int64_t part) const {
    return (outer * matrices_.blocks + k) * pieces_per_matrix_ + part;
  }
  std::int64_t piece_rows(std::int64_t i) const {
    return std::min(piece_rows_, matrices_.rows - i % pieces_per_matrix_ * piece_rows_);
  }
  double* sums(std::int64_t i) {
    return reinterpret_cast<double*>(scratch_.shared()) + i * matrices_.block;
  }
  double* products(std::int64_t i) { return sums(pieces() + i); }

  // Calls body(piece, block, offset in the array, rows), divided over the threads.
  template <class Body>
  void split_pieces(const Body& body) {
    sums(0);  // taken by this thread
    const std::int64_t floats = std::min(piece_rows_, matrices_.rows) * matrices_.block;
    pool_.split(pieces(), std::max<std::int64_t>(1, kNormFloats / floats),
                [&](std::int64_t begin, std::int64_t end, int) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t matrix = i / pieces_per_matrix_;
                    const std::int64_t row = i % pieces_per_matrix_ * piece_rows_;
                    body(i, matrix % matrices_.blocks,
                         matrix * matrices_.matrix_floats() + row * matrices_.block,
                         norm_rows(piece_rows(i)));
                  }
                });
  }

  template <class Body>
  void for_each_piece_of(std::int64_t k, const Body& body) {
    for (std::int64_t outer = 0; outer < matrices_.outer; ++outer) {
      for (std::int64_t part = 0; part < pieces_per_matrix_; ++part) {
        const std::int64_t i = piece(outer, k, part);
        body(i, piece_rows(i));
      }
    }
  }

  double deviation(float variance) const {
    return std::sqrt(static_cast<double>(variance) + static_cast<double>(shape_.epsilon));
  }

  void set_coefficients(const float* mean, const float* variance, const float* gamma) {
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      const double scale = gamma == nullptr ? 1.0 : static_cast<double>(gamma[c]);
      at(mean_, c) = mean[c];
      at(factor_, c) = static_cast<float>(scale / deviation(variance[c]));
    }
  }

  // Adds the pieces' sums to the parameters' gradients, and makes of them what the data's gradient
  // takes from each number because the statistics depend on it.
  void add_gradient_sums(const float* variance, float* gamma_grad, float* beta_grad) {
    const auto count = static_cast<double>(shape_.batch * shape_.spatial);
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      double sum = 0.0, product = 0.0;
      for_each_piece_of(c / matrices_.block, [&](std::int64_t i, std::int64_t /*rows*/) {
        sum += sums(i)[c % matrices_.block];
        product += products(i)[c % matrices_.block];
      });
      const double spread = deviation(variance[c]);
      if (gamma_grad != nullptr) gamma_grad[c] += static_cast<float>(product / spread);
      if (beta_grad != nullptr) beta_grad[c] += static_cast<float>(sum);
      if (shape_.is_fixed) continue;
      const double factor = static_cast<double>(at(factor_, c)) / count;
      at(shift_, c) = static_cast<float>(-factor * sum);
      at(slope_, c) = static_cast<float>(-factor * product / (spread * spread));
    }
  }

  BatchNormShape shape_;
  ThreadPool& pool_;
  Scratch& scratch_;
  ChannelMatrices matrices_;
  std::int64_t chunk_rows_, piece_rows_, pieces_per_matrix_;
  // Coefficients of a pass, zero for padding; see batch_norm_kernels.hpp.
  std::vector<float> mean_, factor_, offset_, slope_, shift_;
};

}  // namespace

// With fixed statistics the pass may have been in place: the sign that the ReLU took is dst's.
BackwardReads batch_norm_reads(const BatchNormShape& shape) {
  return {.src = !shape.is_fixed || shape.trains_gamma,
          .dst = shape.is_fixed && shape.activation.has_value()};
}

Result<std::unique_ptr<BatchNorm>> make_batch_norm(const BatchNormShape& shape, ThreadPool& pool,
                                                   Scratch& scratch) {
  std::unique_ptr<BatchNorm> made = std::make_unique<VectorBatchNorm>(shape, pool, scratch);
  return made;
}

}  // namespace speedo::cpu
