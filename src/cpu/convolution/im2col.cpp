#include "cpu/convolution/im2col.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <speedo/base/limits.hpp>

namespace speedo::cpu {
namespace {

// The two innermost axes, for one kernel position: output (y, x) reads input
// (y * stride_y + origin_y, x * stride_x + origin_x) where y and x are in reach, else zero.
struct Plane {
  std::int64_t src_w, dst_h, dst_w;
  std::int64_t stride_y, origin_y, first_y, last_y;
  std::int64_t stride_x, origin_x, first_x, last_x;
};

void zero(float* target, std::int64_t count) {
  std::memset(target, 0, static_cast<std::size_t>(count) * sizeof(float));
}

// Rows of equal width at stride 1 follow each other in both arrays, so that the whole plane is one
// shifted copy; what runs over a row's ends is wrong there and is zeroed separately.
bool is_shift(const Plane& p) { return p.stride_x == 1 && p.stride_y == 1 && p.src_w == p.dst_w; }

void zero_row_ends(const Plane& p, float* dst) {
  if (p.first_x == 0 && p.last_x == p.dst_w) return;
  for (std::int64_t y = p.first_y; y < p.last_y; ++y) {
    float* row = dst + y * p.dst_w;
    for (std::int64_t x = 0; x < p.first_x; ++x) row[x] = 0.0F;
    for (std::int64_t x = p.last_x; x < p.dst_w; ++x) row[x] = 0.0F;
  }
}

bool is_empty(const Plane& p) { return p.first_y >= p.last_y || p.first_x >= p.last_x; }

void copy_strided(std::int64_t n, std::int64_t stride, const float* source, float* target) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) target[i] = source[i];
  } else if (stride == 2) {
    for (std::int64_t i = 0; i < n; ++i) target[i] = source[2 * i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) target[i] = source[stride * i];
  }
}

void add_strided(std::int64_t n, std::int64_t stride, const float* source, float* target) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) target[i] += source[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) target[stride * i] += source[i];
  }
}

void unfold_plane(const Plane& p, const float* src, float* dst) {
  if (is_empty(p)) {
    zero(dst, p.dst_h * p.dst_w);
    return;
  }
  zero(dst, p.first_y * p.dst_w);
  const std::int64_t width = p.last_x - p.first_x;
  if (is_shift(p)) {
    const std::int64_t begin = p.first_y * p.dst_w + p.first_x;
    const std::int64_t end = (p.last_y - 1) * p.dst_w + p.last_x;
    std::memcpy(dst + begin, src + begin + p.origin_y * p.src_w + p.origin_x,
                static_cast<std::size_t>(end - begin) * sizeof(float));
  } else {
    for (std::int64_t y = p.first_y; y < p.last_y; ++y) {
      const float* row =
          src + (y * p.stride_y + p.origin_y) * p.src_w + p.first_x * p.stride_x + p.origin_x;
      copy_strided(width, p.stride_x, row, dst + y * p.dst_w + p.first_x);
    }
  }
  zero_row_ends(p, dst);
  zero(dst + p.last_y * p.dst_w, (p.dst_h - p.last_y) * p.dst_w);
}

// `Element`: float where dst may be changed, else const float.
template <class Element>
void fold_plane(const Plane& p, Element* dst, float* src) {
  if (is_empty(p)) return;
  if constexpr (!std::is_const_v<Element>) {
    if (is_shift(p)) {
      zero_row_ends(p, dst);
      const std::int64_t begin = p.first_y * p.dst_w + p.first_x;
      const std::int64_t end = (p.last_y - 1) * p.dst_w + p.last_x;
      add_strided(end - begin, 1, dst + begin, src + begin + p.origin_y * p.src_w + p.origin_x);
      return;
    }
  }
  for (std::int64_t y = p.first_y; y < p.last_y; ++y) {
    float* row =
        src + (y * p.stride_y + p.origin_y) * p.src_w + p.first_x * p.stride_x + p.origin_x;
    add_strided(p.last_x - p.first_x, p.stride_x, dst + y * p.dst_w + p.first_x, row);
  }
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

Im2col::Im2col(const ConvolutionShape& shape) : channels_(shape.channels / shape.groups) {
  const std::size_t spatial = shape.kernel.size();
  for (std::size_t i = spatial; i < 2; ++i) axes_.push_back({1, 1, 1, 1, 0, 1});
  for (std::size_t i = 0; i < spatial; ++i) {
    axes_.push_back({shape.src_size[i], shape.dst_size[i], shape.kernel[i], shape.stride[i],
                     shape.pad[i], shape.dilation[i]});
  }
  src_stride_.resize(axes_.size());
  dst_stride_.resize(axes_.size());
  rows_ = channels_;
  identity_ = true;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const Axis& axis = axes_[i];
    src_stride_[i] = src_plane_;
    dst_stride_[i] = dst_plane_;
    src_plane_ *= axis.src;
    dst_plane_ *= axis.dst;
    rows_ *= axis.kernel;
    identity_ = identity_ && axis.kernel == 1 && axis.stride == 1 && axis.pad == 0;
  }
}

Im2col::Reach Im2col::reach(const Axis& axis, std::int64_t kernel_index) const {
  const std::int64_t origin = kernel_index * axis.dilation - axis.pad;
  const std::int64_t first = origin >= 0 ? 0 : divide_up(-origin, axis.stride);
  const std::int64_t last = axis.src > origin ? divide_up(axis.src - origin, axis.stride) : 0;
  return {origin, std::min(first, axis.dst), std::min(last, axis.dst)};
}

// Calls visit(channel, reach of each axis, row) in the order of the matrix's rows.
template <class Visit>
void Im2col::for_each_row(const Visit& visit) const {
  std::int64_t index[kBlobAxesMax] = {};
  Reach reaches[kBlobAxesMax];
  for (std::size_t i = 0; i < axes_.size(); ++i) reaches[i] = reach(axes_[i], 0);
  for (std::int64_t row = 0; row < rows_; ++row) {
    visit(row / (rows_ / channels_), reaches, row);
    for (std::size_t i = axes_.size(); i-- > 0;) {
      index[i] = index[i] + 1 < axes_[i].kernel ? index[i] + 1 : 0;
      reaches[i] = reach(axes_[i], index[i]);
      if (index[i] != 0) break;
    }
  }
}

void Im2col::unfold(const float* src, float* matrix, std::int64_t pitch) const {
  for_each_row([&](std::int64_t channel, const Reach* reaches, std::int64_t row) {
    unfold_from(0, reaches, src + channel * src_plane_, matrix + row * pitch);
  });
}

void Im2col::fold(float* matrix, std::int64_t pitch, float* src) const {
  for_each_row([&](std::int64_t channel, const Reach* reaches, std::int64_t row) {
    fold_from(0, reaches, matrix + row * pitch, src + channel * src_plane_);
  });
}

void Im2col::fold(const float* matrix, std::int64_t pitch, float* src) const {
  for_each_row([&](std::int64_t channel, const Reach* reaches, std::int64_t row) {
    fold_from(0, reaches, matrix + row * pitch, src + channel * src_plane_);
  });
}

void Im2col::unfold_from(std::size_t axis, const Reach* reaches, const float* src,
                         float* dst) const {
  const Axis& a = axes_[axis];
  const Reach& r = reaches[axis];
  if (axis + 2 == axes_.size()) {
    const Axis& b = axes_[axis + 1];
    const Reach& s = reaches[axis + 1];
    unfold_plane({b.src, a.dst, b.dst, a.stride, r.origin, r.first, r.last, b.stride, s.origin,
                  s.first, s.last},
                 src, dst);
    return;
  }
  for (std::int64_t o = 0; o < a.dst; ++o) {
    if (o < r.first || o >= r.last) {
      zero(dst + o * dst_stride_[axis], dst_stride_[axis]);
    } else {
      unfold_from(axis + 1, reaches, src + (o * a.stride + r.origin) * src_stride_[axis],
                  dst + o * dst_stride_[axis]);
    }
  }
}

template <class Element>
void Im2col::fold_from(std::size_t axis, const Reach* reaches, Element* dst, float* src) const {
  const Axis& a = axes_[axis];
  const Reach& r = reaches[axis];
  if (axis + 2 == axes_.size()) {
    const Axis& b = axes_[axis + 1];
    const Reach& s = reaches[axis + 1];
    fold_plane({b.src, a.dst, b.dst, a.stride, r.origin, r.first, r.last, b.stride, s.origin,
                s.first, s.last},
               dst, src);
    return;
  }
  for (std::int64_t o = r.first; o < r.last; ++o) {
    fold_from(axis + 1, reaches, dst + o * dst_stride_[axis],
              src + (o * a.stride + r.origin) * src_stride_[axis]);
  }
}

namespace {

// Of one sample's channels.
ConvolutionShape without_groups(const ConvolutionShape& shape) {
  ConvolutionShape one = shape;
  one.groups = 1;
  return one;
}

}  // namespace

void unfold(ThreadPool& pool, const ConvolutionShape& shape, const float* src, float* matrices) {
  const Im2col windows(without_groups(shape));
  const std::int64_t matrix = windows.rows() * windows.columns();
  pool.split(shape.batch, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t n = first; n < last; ++n) {
      windows.unfold(src + n * windows.src_count(), matrices + n * matrix, windows.columns());
    }
  });
}

void fold(ThreadPool& pool, const ConvolutionShape& shape, const float* matrices, float* src) {
  const Im2col windows(without_groups(shape));
  const std::int64_t matrix = windows.rows() * windows.columns();
  pool.split(shape.batch, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t n = first; n < last; ++n) {
      float* const target = src + n * windows.src_count();
      zero(target, windows.src_count());
      windows.fold(matrices + n * matrix, windows.columns(), target);
    }
  });
}

}  // namespace speedo::cpu
