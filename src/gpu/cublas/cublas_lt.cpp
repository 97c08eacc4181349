#include "gpu/cublas/cublas_lt.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "gpu/library/shared_library.hpp"

namespace speedo::gpu {
namespace {

// Algorithms may load from addresses of at most this alignment at a time.
constexpr std::uint32_t kAlignmentMax = 256;

std::uint32_t alignment_of(const void* place) {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  if (address == 0) return kAlignmentMax;
  return static_cast<std::uint32_t>(std::min<std::uintptr_t>(address & -address, kAlignmentMax));
}

// All that an algorithm depends on.
struct PlanKey {
  BlasProducts products;
  std::array<std::uint32_t, 3> alignments;  // of a, b and d

  auto operator<=>(const PlanKey&) const = default;
};

cublasComputeType_t compute_type(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kFloat32: break;
    case Arithmetic::kTf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Arithmetic::kBfloat16: return CUBLAS_COMPUTE_32F_FAST_16BF;
    case Arithmetic::kFloat16: return CUBLAS_COMPUTE_32F_FAST_16F;
  }
  return CUBLAS_COMPUTE_32F;
}

cudaDataType_t blas_type(ElementType type) {
  return type == ElementType::kFloat32 ? CUDA_R_32F : CUDA_R_16BF;
}

cublasLtEpilogue_t epilogue_of(BlasEpilogue epilogue) {
  switch (epilogue) {
    case BlasEpilogue::kNone: break;
    case BlasEpilogue::kBias: return CUBLASLT_EPILOGUE_BIAS;
    case BlasEpilogue::kBiasRelu: return CUBLASLT_EPILOGUE_RELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

class CublasLt final : public Blas {
 public:
  CublasLt(const CublasLtFunctions& functions, cublasLtHandle_t handle, const BlasOptions& options)
      : lt_(functions), handle_(handle), options_(options) {}
  ~CublasLt() override {
    for (auto& [key, plan] : plans_) destroy(plan);
    lt_.destroy(handle_);
  }
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::size_t workspace_bytes() const override { return options_.workspace_bytes_max; }
  std::int64_t plans() const override { return static_cast<std::int64_t>(plans_.size()); }

  Result<void> multiply(StreamHandle stream, const BlasProducts& products,
                        const BlasOperands& operands, WorkMemory memory) override {
    const PlanKey key{products,
                      {alignment_of(operands.a), alignment_of(operands.b),
                       alignment_of(operands.d)}};
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      Plan plan;
      if (auto made = make(plan, key, operands.bias); !made) {
        destroy(plan);
        return made;
      }
      found = plans_.emplace(key, plan).first;
    }
    const Plan& plan = found->second;
    SPEEDO_TRY(set_bias(plan, products, operands.bias));
    return said("cublasLtMatmul",
                lt_.multiply(handle_, plan.task, &operands.alpha, operands.a, plan.a, operands.b,
                             plan.b, &operands.beta, operands.d, plan.d, operands.d, plan.d,
                             &plan.algorithm, memory.data, memory.bytes, stream));
  }

 private:
  struct Plan {
    cublasLtMatmulDesc_t task = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
  };

  Result<void> said(const char* function, cublasStatus_t status) const {
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    const bool lacks = status == CUBLAS_STATUS_NOT_SUPPORTED;
    return Error{lacks ? ErrorCode::kUnsupported : ErrorCode::kInternal,
                 fmt::format("{}: {}", function, lt_.get_status_name(status))};
  }

  template <class Value>
  Result<void> set_task(const Plan& plan, cublasLtMatmulDescAttributes_t name, Value value) {
    return said("cublasLtMatmulDescSetAttribute",
                lt_.set_task(plan.task, name, &value, sizeof value));
  }

  Result<void> set_bias(const Plan& plan, const BlasProducts& products, const float* bias) {
    if (products.epilogue == BlasEpilogue::kNone) return {};
    return set_task(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }

  Result<void> make(Plan& plan, const PlanKey& key, const float* bias) {
    const BlasProducts& all = key.products;
    const auto flag = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    // What is short already is not rounded any more.
    const bool rounds = all.a.type == ElementType::kFloat32;
    const cublasComputeType_t compute =
        compute_type(rounds ? options_.arithmetic : Arithmetic::kFloat32);
    SPEEDO_TRY(said("cublasLtMatmulDescCreate",
                    lt_.create_task(&plan.task, compute, CUDA_R_32F)));
    SPEEDO_TRY(set_task(plan, CUBLASLT_MATMUL_DESC_TRANSA, flag(all.a.transposed)));
    SPEEDO_TRY(set_task(plan, CUBLASLT_MATMUL_DESC_TRANSB, flag(all.b.transposed)));
    if (all.epilogue != BlasEpilogue::kNone) {
      SPEEDO_TRY(set_task(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(all.epilogue)));
      SPEEDO_TRY(set_bias(plan, all, bias));
    }
    SPEEDO_TRY(make_layout(plan.a, all.a, {all.m, all.k}, all.count));
    SPEEDO_TRY(make_layout(plan.b, all.b, {all.k, all.n}, all.count));
    SPEEDO_TRY(make_layout(plan.d, all.d, {all.m, all.n}, all.count));
    return choose(plan, key);
  }

  // `size`: rows and columns after the transposition.
  Result<void> make_layout(cublasLtMatrixLayout_t& layout, const BlasMatrix& matrix,
                           std::pair<std::int64_t, std::int64_t> size, std::int64_t count) {
    if (matrix.transposed) std::swap(size.first, size.second);
    SPEEDO_TRY(said("cublasLtMatrixLayoutCreate",
                    lt_.create_layout(&layout, blas_type(matrix.type),
                                      static_cast<std::uint64_t>(size.first),
                                      static_cast<std::uint64_t>(size.second), matrix.stride)));
    if (count == 1) return {};
    const auto batch = static_cast<std::int32_t>(count);
    SPEEDO_TRY(said("cublasLtMatrixLayoutSetAttribute",
                    lt_.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                   sizeof batch)));
    return said("cublasLtMatrixLayoutSetAttribute",
                lt_.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.step,
                               sizeof matrix.step));
  }

  // The algorithm that the library's heuristics think best, within the working memory.
  Result<void> choose(Plan& plan, const PlanKey& key) {
    cublasLtMatmulPreference_t preference = nullptr;
    SPEEDO_TRY(said("cublasLtMatmulPreferenceCreate", lt_.create_preference(&preference)));
    auto chosen = set_preferences(preference, key);
    cublasLtMatmulHeuristicResult_t best = {};
    int count = 0;
    if (chosen) {
      chosen = said("cublasLtMatmulAlgoGetHeuristic",
                    lt_.get_algorithms(handle_, plan.task, plan.a, plan.b, plan.d, plan.d,
                                       preference, 1, &best, &count));
    }
    lt_.destroy_preference(preference);
    SPEEDO_TRY(chosen);
    if (count < 1 || best.state != CUBLAS_STATUS_SUCCESS) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("cuBLASLt has no algorithm for a product of {} x {} x {}",
                               key.products.m, key.products.n, key.products.k)};
    }
    plan.algorithm = best.algo;
    return {};
  }

  Result<void> set_preferences(cublasLtMatmulPreference_t preference, const PlanKey& key) {
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
      return said("cublasLtMatmulPreferenceSetAttribute",
                  lt_.set_preference(preference, name, &value, sizeof value));
    };
    const auto [a, b, d] = key.alignments;
    SPEEDO_TRY(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                   std::uint64_t{options_.workspace_bytes_max}));
    SPEEDO_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a));
    SPEEDO_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b));
    SPEEDO_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, d));
    return set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d);
  }

  void destroy(Plan& plan) {
    for (cublasLtMatrixLayout_t layout : {plan.a, plan.b, plan.d}) {
      if (layout != nullptr) lt_.destroy_layout(layout);
    }
    if (plan.task != nullptr) lt_.destroy_task(plan.task);
  }

  CublasLtFunctions lt_;
  cublasLtHandle_t handle_;
  BlasOptions options_;
  std::map<PlanKey, Plan> plans_;
};

}  // namespace

Result<std::unique_ptr<Blas>> make_cublas_lt(const CublasLtFunctions& functions,
                                             const BlasOptions& options) {
  // Major * 10000 + minor * 100 + patch.
  const int version = static_cast<int>(functions.get_version());
  SPEEDO_TRY(check_version("cuBLASLt",
                           {version / 10000, version / 100 % 100, version % 100},
                           {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH}));
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = functions.create(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return Error{ErrorCode::kInternal,
                 fmt::format("cublasLtCreate: {}", functions.get_status_name(status))};
  }
  return std::unique_ptr<Blas>(std::make_unique<CublasLt>(functions, handle, options));
}

}  // namespace speedo::gpu
