#pragma once

#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "core/plan/backward_plan.hpp"
#include "core/plan/in_place_plan.hpp"
#include "core/plan/layout_plan.hpp"
#include "core/plan/memory_plan.hpp"

namespace speedo {

// What plans ask of layers. Each is valid from the step of the net on that it names.

// After setup().
BackwardTraits backward_traits(const Net::LayerView& view, const caffe::LayerParameter& message);
// After reshape().
InPlaceTraits in_place_traits(const Net::LayerView& view);
LayoutTraits layout_traits(const Net::LayerView& view, LayoutKind kind);
// After prepare().
MemoryTraits memory_traits(const Net::LayerView& view, bool trains);

}  // namespace speedo
