#pragma once

#include <cstdint>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu::onednn {

// Winograd's F(4x4, 3x3) (Lavin 2016) computes tiles of 4 x 4 outputs with a quarter of the
// multiplications, and transforms the weights in each run. Measured on the nets' shapes (AVX-512):
// it wins from some 64 tiles and 32 channels on, up to threefold. Its largest error was 1.9e-6 of
// the largest value, direct convolution's 2.4e-7.
bool suits_winograd(const ConvolutionShape& shape, std::int64_t samples);

// Of one sample.
std::int64_t winograd_tiles(const ConvolutionShape& shape);
// Runs of fewer tiles lose by the weights' transform.
constexpr std::int64_t kWinogradTilesEnough = 256;

}  // namespace speedo::cpu::onednn
