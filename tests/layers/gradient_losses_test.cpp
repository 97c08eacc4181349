// The gradients of losses against finite differences, on the CPU backend and on the reference
// backend.

#include <speedo/backend/backend.hpp>

#include "support/catch.hpp"
#include "support/gradient_check.hpp"

namespace speedo {
namespace {

// Margins begin where a score is 1 or -1: two ranges keep away from both.
TEST_CASE("gradient: HingeLoss") {
  const auto norm = GENERATE(as<std::string>(), "L1", "L2");
  const std::string text = "type: 'HingeLoss' hinge_loss_param { norm: " + norm + " }";
  GradientCheck check{.bottoms = {{5, 2, 2}, {5}}, .label_bottom = 1, .classes = 4};
  check.low = -0.95F, check.high = 0.95F;
  check_on_all(text, check);
  check.low = 1.05F, check.high = 3.0F;
  check_on_all(text, check);
}

TEST_CASE("gradient: SigmoidCrossEntropyLoss") {
  const auto options =
      GENERATE(as<std::string>(), "", "ignore_label: 1", "normalize: true ignore_label: 0",
               "normalize: false", "normalization: FULL", "normalization: NONE",
               "normalization: VALID ignore_label: 2");
  check_on_all(
      "type: 'SigmoidCrossEntropyLoss' loss_param { " + options + " }",
      {.bottoms = {{3, 5, 2}, {3, 10}}, .low = -3, .high = 3, .label_bottom = 1, .classes = 2});
}

TEST_CASE("gradient: MultinomialLogisticLoss") {
  check_on_all("type: 'MultinomialLogisticLoss'", {.bottoms = {{4, 6}, {4, 1, 1, 1}},
                                                   .low = 0.3F,
                                                   .high = 0.9F,
                                                   .label_bottom = 1,
                                                   .classes = 6});
}

// The matrix is labels too: whole numbers, and no gradient goes there.
TEST_CASE("gradient: ContrastiveLoss") {
  const auto options = GENERATE(as<std::string>(), "margin: 9", "margin: 30 legacy_version: true",
                                "margin: 0.001", "margin: 0.001 legacy_version: true");
  check_on_all("type: 'ContrastiveLoss' contrastive_loss_param { " + options + " }",
               {.bottoms = {{4, 6}, {4, 6, 1, 1}, {4}}, .label_bottom = 2, .classes = 2});
}

TEST_CASE("gradient: InfogainLoss with its matrix as third bottom") {
  const auto options = GENERATE(as<std::string>(), "", "ignore_label: 2", "normalization: FULL",
                                "normalization: NONE ignore_label: 0", "normalization: BATCH_SIZE");
  check_on_all("type: 'InfogainLoss' loss_param { " + options + " }",
               {.bottoms = {{3, 4, 2}, {3, 2}, {1, 1, 4, 4}}, .label_bottom = 1, .classes = 4});
  check_on_all(
      "type: 'InfogainLoss' infogain_loss_param { axis: -1 } loss_param { " + options + " }",
      {.bottoms = {{6, 3}, {6}, {3, 3}}, .tops = 2, .label_bottom = 1, .classes = 3});
}

}  // namespace
}  // namespace speedo
