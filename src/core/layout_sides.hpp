#pragma once

#include <span>
#include <vector>

#include <speedo/core/net.hpp>

namespace speedo {

// The layout that a tensor has in a net that prefers `kind`; plain if it has no channels.
Layout native_layout(LayoutKind kind, const Tensor& tensor);

// Which layers' tops get native layouts and whose are plain, so that each blob has one layout for
// all layers that write it, every LayoutRule holds, and as little as possible must be reordered
// where layers read. `must_be_plain`: layers that get no choice. Requires: reshaped layers.
std::vector<bool> choose_native_layers(LayoutKind kind, std::span<const Net::LayerView> layers,
                                       const std::vector<bool>& must_be_plain);

}  // namespace speedo
