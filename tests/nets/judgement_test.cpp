#include "nets/judgement.hpp"

#include "support/catch.hpp"

namespace speedo::nets {

TEST_CASE("rounding is right, what moves with its data is sensitive, all else is wrong") {
  CHECK(judge({.error = 1e-5, .scale = 1.0, .noise = 0.0}) == Kind::kRight);
  CHECK(judge({.error = 1e-4, .scale = 1.0, .noise = 2e-5}) == Kind::kSensitive);
  CHECK(judge({.error = 1e-4, .scale = 1.0, .noise = 1e-6}) == Kind::kWrong);
  CHECK(judge({.error = 1e-4, .scale = 0.0, .noise = 0.0}) == Kind::kWrong);
}

TEST_CASE("a small gradient is wrong by its own measure, whatever the net's others are") {
  const Difference small{.error = 2e-4, .scale = 0.1, .noise = 1e-6, .largest_gradient = 100.0};
  CHECK(judge(small) == Kind::kWrong);
  Difference rounding = small;
  rounding.error = 5e-5;
  CHECK(judge(rounding) == Kind::kSensitive);
  rounding.largest_gradient = 1.0;
  CHECK(judge(rounding) == Kind::kWrong);
}

TEST_CASE("a gradient that is the rounding of a sum says nothing up to the net's tolerance") {
  const Difference cancelled{.error = 1e-6, .scale = 1e-7, .noise = 6e-8, .largest_gradient = 1.0};
  CHECK(judge(cancelled) == Kind::kRight);
  Difference left_over = cancelled;
  left_over.noise = 4e-10;
  CHECK(judge(left_over) == Kind::kSensitive);
  left_over.noise = 4e-11;
  CHECK(judge(left_over) == Kind::kWrong);
  Difference fault = cancelled;
  fault.error = 2e-5;
  CHECK(judge(fault) == Kind::kWrong);
}

TEST_CASE("a gradient whose terms cancel whatever the data are says nothing up to their rounding") {
  // 3200 terms of 1, as an ASUM leaves behind an MVN without variance.
  const Difference cancelled{.error = 1.5e-4,
                             .scale = 2e-5,
                             .noise = 0.0,
                             .largest_gradient = 1.0,
                             .summed = 3200.0};
  CHECK(judge(cancelled) == Kind::kRight);
  Difference fault = cancelled;
  fault.error = 8e-4;
  CHECK(judge(fault) == Kind::kWrong);
  // Of the steps of a sum in few parts.
  CHECK(judge({.error = 1.94e-4,
               .scale = 3.3e-5,
               .noise = 0.0,
               .largest_gradient = 149.0,
               .summed = 1241.0}) == Kind::kRight);
  Difference few_terms = cancelled;
  few_terms.summed = 320.0;
  CHECK(judge(few_terms) == Kind::kWrong);
  Difference not_cancelled = cancelled;
  not_cancelled.scale = 10.0;
  CHECK(judge(not_cancelled) == Kind::kSensitive);
  not_cancelled.error = 8e-4;
  CHECK(judge(not_cancelled) == Kind::kWrong);
}

TEST_CASE("a long sum may lose in its steps what its count explains, up to a thousandth") {
  // A bias over 17490 positions that share few values, summed one by one.
  const Difference bias{.error = 2.6e-6,
                        .scale = 0.05,
                        .noise = 1.2e-7,
                        .largest_gradient = 0.16,
                        .summed = 0.48,
                        .terms = 17490.0};
  CHECK(judge(bias) == Kind::kSensitive);
  Difference short_sum = bias;
  short_sum.terms = 500.0;
  CHECK(judge(short_sum) == Kind::kWrong);
  Difference fault = bias;
  fault.error = 2e-5;
  CHECK(judge(fault) == Kind::kWrong);
  fault.terms = 1e9;
  CHECK(judge(fault) == Kind::kSensitive);
  fault.error = 6e-5;
  CHECK(judge(fault) == Kind::kWrong);
}

}  // namespace speedo::nets
