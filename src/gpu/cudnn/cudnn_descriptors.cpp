#include "gpu/cudnn/cudnn_descriptors.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

namespace speedo::gpu {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::size_t kAxesMin = 2, kAxesMax = 3;

// With more axes in front, which change nothing, if there are too few.
std::vector<int> padded_axes(const Sizes& sizes, int neutral) {
  std::vector<int> result(kAxesMin - std::min(kAxesMin, sizes.size()), neutral);
  for (const std::int64_t size : sizes) result.push_back(static_cast<int>(size));
  return result;
}

std::vector<int> with_axes(std::int64_t first, std::int64_t second, const Sizes& sizes) {
  std::vector<int> result{static_cast<int>(first), static_cast<int>(second)};
  const std::vector<int> axes = padded_axes(sizes, 1);
  result.insert(result.end(), axes.begin(), axes.end());
  return result;
}

// The distances between neighbours along each axis of an N x C x sizes array.
std::vector<int> strides_of(const std::vector<int>& dims, bool channels_last) {
  std::vector<int> strides(dims.size());
  int step = channels_last ? dims[1] : 1;
  for (std::size_t axis = dims.size(); axis-- > 2;) {
    strides[axis] = step;
    step *= dims[axis];
  }
  strides[1] = channels_last ? 1 : step;
  strides[0] = channels_last ? step : step * dims[1];
  return strides;
}

cudnnDataType_t dnn_type(ElementType type) {
  return type == ElementType::kFloat32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
}

// The library counts elements in ints.
bool has_int_sizes(const ConvolutionShape& shape) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  return src_array(shape).storage_count({}) <= kMost &&
         dst_array(shape).storage_count({}) <= kMost && weight_count(shape) <= kMost;
}

}  // namespace

Result<void> cudnn_said(const CudnnFunctions& functions, const char* function,
                        cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  const bool lacks = CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
  return Error{lacks ? ErrorCode::kUnsupported : ErrorCode::kInternal,
               fmt::format("{}: {}", function, functions.get_error_string(status))};
}

bool have_one_order(const ConvolutionShape& shape) {
  const bool are_plain = shape.src_layout.is_plain() && shape.dst_layout.is_plain();
  return are_plain || (shape.src_layout.block == shape.channels &&
                       shape.dst_layout.block == shape.outputs &&
                       shape.src_layout.type == shape.dst_layout.type);
}

CudnnDescriptors::~CudnnDescriptors() {
  for (cudnnTensorDescriptor_t tensor : {src, dst, bias}) {
    if (tensor != nullptr) dnn_.destroy_tensor(tensor);
  }
  if (weights != nullptr) dnn_.destroy_filter(weights);
  if (convolution != nullptr) dnn_.destroy_convolution(convolution);
  if (relu != nullptr) dnn_.destroy_activation(relu);
}

Result<void> CudnnDescriptors::describe(const ConvolutionShape& shape, const DnnOrder& order) {
  SPEEDO_ASSERT(!shape.transposed);
  SPEEDO_ASSERT(!order.by_group || have_one_order(shape));
  order_ = order;
  type_ = shape.dst_layout.type;
  parts_ = order.by_group ? shape.groups : 1;
  if (shape.kernel.size() > kAxesMax) {
    return Error{ErrorCode::kUnsupported, "cuDNN convolves at most three axes"};
  }
  if (shape.src_layout.type != type_) {
    return Error{ErrorCode::kUnsupported, "cuDNN convolves arrays of one type"};
  }
  if (!has_int_sizes(shape)) {
    return Error{ErrorCode::kUnsupported, "cuDNN counts elements up to 2147483647"};
  }
  SPEEDO_TRY(describe_tensor(src, src_array(shape), shape.src_size, shape.src_layout));
  SPEEDO_TRY(describe_tensor(dst, dst_array(shape), shape.dst_size, shape.dst_layout));
  SPEEDO_TRY(describe_tensor(bias, {1, shape.outputs}, Sizes(shape.dst_size.size(), 1), {}));
  SPEEDO_TRY(describe_weights(shape));
  SPEEDO_TRY(describe_windows(shape));
  SPEEDO_TRY(cudnn_said(dnn_, "cudnnCreateActivationDescriptor", dnn_.create_activation(&relu)));
  return cudnn_said(dnn_, "cudnnSetActivationDescriptor",
                    dnn_.set_activation(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
}

Result<void> CudnnDescriptors::set_math(cudnnMathType_t math) {
  return cudnn_said(dnn_, "cudnnSetConvolutionMathType", dnn_.set_math(convolution, math));
}

Result<void> CudnnDescriptors::describe_tensor(cudnnTensorDescriptor_t& tensor,
                                               const ArrayShape& array, const Sizes& sizes,
                                               Layout layout) {
  // A single channel lies as it does in both orders, and is described as the others are.
  const bool channels_last = !layout.is_plain() || (order_.weights_last && array.channels == 1);
  if (channels_last && layout.block != array.channels) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cuDNN knows no blocks of {} channels", layout.block)};
  }
  std::vector<int> dims = with_axes(array.batch, array.channels, sizes);
  const std::vector<int> strides = strides_of(dims, channels_last);
  dims[1] /= static_cast<int>(parts_);
  SPEEDO_TRY(cudnn_said(dnn_, "cudnnCreateTensorDescriptor", dnn_.create_tensor(&tensor)));
  return cudnn_said(dnn_, "cudnnSetTensorNdDescriptor",
                    dnn_.set_tensor(tensor, dnn_type(layout.type), static_cast<int>(dims.size()),
                                    dims.data(), strides.data()));
}

Result<void> CudnnDescriptors::describe_weights(const ConvolutionShape& shape) {
  const std::vector<int> dims =
      with_axes(shape.outputs / parts_, shape.channels / shape.groups, shape.kernel);
  SPEEDO_TRY(cudnn_said(dnn_, "cudnnCreateFilterDescriptor", dnn_.create_filter(&weights)));
  return cudnn_said(dnn_, "cudnnSetFilterNdDescriptor",
                    dnn_.set_filter(weights, dnn_type(type_),
                                    order_.weights_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                    static_cast<int>(dims.size()), dims.data()));
}

Result<void> CudnnDescriptors::describe_windows(const ConvolutionShape& shape) {
  const std::vector<int> pad = padded_axes(shape.pad, 0);
  const std::vector<int> stride = padded_axes(shape.stride, 1);
  const std::vector<int> dilation = padded_axes(shape.dilation, 1);
  SPEEDO_TRY(cudnn_said(dnn_, "cudnnCreateConvolutionDescriptor",
                        dnn_.create_convolution(&convolution)));
  SPEEDO_TRY(cudnn_said(
      dnn_, "cudnnSetConvolutionNdDescriptor",
      dnn_.set_convolution(convolution, static_cast<int>(pad.size()), pad.data(), stride.data(),
                           dilation.data(), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)));
  return cudnn_said(dnn_, "cudnnSetConvolutionGroupCount",
                    dnn_.set_groups(convolution, static_cast<int>(shape.groups / parts_)));
}

}  // namespace speedo::gpu
