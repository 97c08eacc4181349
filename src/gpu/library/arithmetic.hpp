#pragma once

namespace speedo::gpu {

// In what precision products are computed; weights and sums are float32. kTf32 rounds operands to
// 10 binary digits, kBfloat16 to 7 where a library can do it, kFloat16 to 10 and to a range up to
// 65504.
enum class Arithmetic { kFloat32, kTf32, kBfloat16, kFloat16 };

}  // namespace speedo::gpu
