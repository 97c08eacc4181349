#include "base/edit_distance.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("The distance of words is the number of letters that differ, lack or are too many") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("conv", "conv") == 0);
  CHECK(edit_distance("", "conv") == 4);
  CHECK(edit_distance("conv1", "conv2") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("sitting", "kitten") == 3);
}

}  // namespace
}  // namespace speedo
