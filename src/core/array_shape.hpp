#pragma once

#include <speedo/backend/layout.hpp>
#include <speedo/core/shape.hpp>

namespace speedo {

// The first two axes and the product of the others; {1, 1, count} with fewer.
inline ArrayShape array_shape_of(const Shape& shape) {
  if (shape.axes() < 2) return {1, 1, shape.count()};
  return {shape[0], shape[1], shape.count(2)};
}

}  // namespace speedo
