// The gradients of scales and biases are sums of very many terms that mostly cancel. What is lost
// must be little beside the terms, in every layout and whatever their count.

#include <cmath>

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_layout.hpp"

namespace speedo {
namespace {

// Of the sum of the terms' magnitudes: a float's last place.
constexpr double kLossMax = 1.2e-7;

struct Sum {
  double value = 0.0, magnitude = 0.0;
  void add(double term) { value += term, magnitude += std::fabs(term); }
};

TEST_CASE("sums over channels lose less than a float's last place of their terms") {
  const std::int64_t channels = GENERATE(1, 3, 16, 20);
  const std::int64_t spatial = GENERATE(1, 49, 1025, 40000);
  const std::int64_t batch = GENERATE(1, 7);
  // A kernel that runs on the host takes long over many terms, and one sample has enough of them.
  const bool is_double = test::kernel_choice().gpu_double.has_value();
  if (is_double && spatial == 40000 && batch > 1) return;
  const double loss_max = test::tolerated(kLossMax);
  const ArrayShape shape{batch, channels, spatial};
  const auto x = test_values(shape, -1, 1, 1);
  const auto y_grad = test_values(shape, -1, 1, 2);
  std::vector<Sum> gamma(static_cast<std::size_t>(channels)), beta(gamma.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto c = i / static_cast<std::size_t>(spatial) % gamma.size();
    gamma[c].add(double{x[i]} * double{y_grad[i]});
    beta[c].add(double{y_grad[i]});
  }
  for (const Layout layout : layouts_of(channels)) {
    for (const int threads : thread_counts()) {
      CAPTURE(channels, spatial, batch, layout.block, threads);
      Workbench bench(test::make_backend(threads));
      float* gamma_grad = bench.put(std::vector<float>(gamma.size(), 0.0F));
      float* beta_grad = bench.put(std::vector<float>(beta.size(), 0.0F));
      bench.backend().sum_channels({shape, layout}, bench.put_array(shape, layout, x),
                                   bench.put_array(shape, layout, y_grad), gamma_grad, beta_grad);
      const auto got_gamma = bench.get(gamma_grad, channels);
      const auto got_beta = bench.get(beta_grad, channels);
      for (std::size_t c = 0; c < gamma.size(); ++c) {
        CAPTURE(c);
        CHECK(std::fabs(got_gamma[c] - gamma[c].value) <= loss_max * gamma[c].magnitude);
        CHECK(std::fabs(got_beta[c] - beta[c].value) <= loss_max * beta[c].magnitude);
      }
    }
  }
}

}  // namespace
}  // namespace speedo
