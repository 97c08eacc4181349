#pragma once

#include <vector>

#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"

namespace speedo {

// A layer that cannot be, and a part of what it must say.
struct WrongLayer {
  const char* text;
  std::vector<Shape> bottoms;
  int tops;
  const char* message;
};

// Requires that it is refused in one line that begins with its name.
inline void require_refused(const WrongLayer& bad) {
  CAPTURE(bad.text);
  LayerFixture it(bad.text, test::make_backend(1));
  const auto built = it.build(bad.bottoms, bad.tops);
  REQUIRE_FALSE(built.has_value());
  CAPTURE(built.error().message);
  REQUIRE(built.error().code == ErrorCode::kConfig);
  REQUIRE(built.error().message.find("layer 'it' (") == 0);
  REQUIRE(built.error().message.find(bad.message) != std::string::npos);
  REQUIRE(built.error().message.find('\n') == std::string::npos);
}

}  // namespace speedo
