#include "bench/fma_peak.hpp"

#include "bench/rates.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/fma_peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace speedo::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains hide the latency of a multiply-add wherever two a cycle start. Returns how many
// floating-point operations it did; `sink` keeps the compiler from leaving them out.
double multiply_adds(std::int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, 0.999F), shift = hn::Set(d, 0.001F);
  auto a = hn::Set(d, 1.0F), b = hn::Set(d, 2.0F), c = hn::Set(d, 3.0F), e = hn::Set(d, 4.0F);
  auto f = hn::Set(d, 5.0F), g = hn::Set(d, 6.0F), h = hn::Set(d, 7.0F), i = hn::Set(d, 8.0F);
  auto j = hn::Set(d, 9.0F), k = hn::Set(d, 10.0F), l = hn::Set(d, 11.0F), m = hn::Set(d, 12.0F);
  for (std::int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, scale, shift), b = hn::MulAdd(b, scale, shift);
    c = hn::MulAdd(c, scale, shift), e = hn::MulAdd(e, scale, shift);
    f = hn::MulAdd(f, scale, shift), g = hn::MulAdd(g, scale, shift);
    h = hn::MulAdd(h, scale, shift), i = hn::MulAdd(i, scale, shift);
    j = hn::MulAdd(j, scale, shift), k = hn::MulAdd(k, scale, shift);
    l = hn::MulAdd(l, scale, shift), m = hn::MulAdd(m, scale, shift);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                           hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)),
                                   hn::Add(hn::Add(j, k), hn::Add(l, m))));
  *sink = hn::GetLane(sum);
  return 12.0 * 2.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace
}  // namespace speedo::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::bench {

HWY_EXPORT(multiply_adds);

namespace {
constexpr std::int64_t kRounds = 10'000'000;
constexpr int kRuns = 20;
}  // namespace

std::vector<FmaPeak> measure_fma_peaks(int threads) {
  std::vector<FmaPeak> peaks;
  std::vector<float> sinks(static_cast<std::size_t>(threads));
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    double flops = 0.0;
    const double seconds = best_seconds(kRuns, threads, [&](int thread) {
      const double done = HWY_DYNAMIC_DISPATCH(multiply_adds)(
          kRounds, &sinks[static_cast<std::size_t>(thread)]);
      if (thread == 0) flops = done;
    });
    peaks.push_back({hwy::TargetName(target), flops * threads / seconds / 1e9});
  }
  hwy::SetSupportedTargetsForTest(0);
  return peaks;
}

}  // namespace speedo::bench
#endif
