#include "support/gpu/cublas_double.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "support/gpu/handle_set.hpp"
#include "support/gpu/short_floats.hpp"
#include "support/gpu/stored_elements.hpp"

namespace speedo::test {
namespace {

CublasDouble::State* active_cublas = nullptr;

}  // namespace

struct LtLayout {
  cudaDataType type = CUDA_R_32F;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t stride = 0, step = 0;
  std::int32_t count = 1;

  bool operator==(const LtLayout&) const = default;
  ElementType element() const {
    return type == CUDA_R_16BF ? ElementType::kBfloat16 : ElementType::kFloat32;
  }
  std::int64_t bytes() const { return extent() * bytes_of_element(element()); }
  // From the first element to behind the last.
  std::int64_t extent() const {
    return (count - 1) * step + (static_cast<std::int64_t>(columns) - 1) * stride +
           static_cast<std::int64_t>(rows);
  }
};

struct LtTask {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  cublasOperation_t a_op = CUBLAS_OP_N, b_op = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;  // may change from product to product

  bool is_like(const LtTask& other) const {
    LtTask same = other;
    same.bias = bias;
    return *this == same;
  }
  bool operator==(const LtTask&) const = default;
  Rounding rounding() const {
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return {.digits = 10};
    if (compute == CUBLAS_COMPUTE_32F_FAST_16F) return {.is_half = true};
    return {.digits = compute == CUBLAS_COMPUTE_32F_FAST_16BF ? 7 : 23};
  }
};

struct LtPreference {
  std::uint64_t bytes = 0;
  std::array<std::uint32_t, 4> alignments{256, 256, 256, 256};  // of a, b, c and d
};

// What an algorithm was found for.
struct LtProblem {
  LtTask task;
  LtLayout a, b, c, d;
  LtPreference preference;
  std::size_t bytes = 0;

  bool is_for(const LtProblem& other) const {
    return task.is_like(other.task) && a == other.a && b == other.b && c == other.c && d == other.d;
  }
};

struct LtOperands {
  float alpha, beta;
  const void* a;
  const void* b;
  void* d;
};

namespace {

// d = alpha op(a) op(b) + beta d, all of it as the descriptors say.
void multiply_plainly(const LtProblem& all, const LtOperands& on) {
  const auto k = static_cast<std::int64_t>(all.task.a_op == CUBLAS_OP_N ? all.a.columns
                                                                        : all.a.rows);
  const std::int64_t a_row = all.task.a_op == CUBLAS_OP_N ? 1 : all.a.stride;
  const std::int64_t a_inner = all.task.a_op == CUBLAS_OP_N ? all.a.stride : 1;
  const std::int64_t b_inner = all.task.b_op == CUBLAS_OP_N ? 1 : all.b.stride;
  const std::int64_t b_column = all.task.b_op == CUBLAS_OP_N ? all.b.stride : 1;
  const Rounding rounding = all.task.rounding();
  const std::vector<float> of_a = read_elements(on.a, all.a.extent(), all.a.element());
  const std::vector<float> of_b = read_elements(on.b, all.b.extent(), all.b.element());
  std::vector<float> of_d = read_elements(on.d, all.d.extent(), all.d.element());
  const bool has_bias = all.task.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  const auto rows = static_cast<std::int64_t>(all.d.rows);
  const std::vector<float> bias =
      read_elements(all.task.bias, has_bias ? rows : 0, all.d.element());
  for (std::int64_t p = 0; p < all.d.count; ++p) {
    for (std::int64_t column = 0; column < static_cast<std::int64_t>(all.d.columns); ++column) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const float* a = of_a.data() + p * all.a.step + row * a_row;
        const float* b = of_b.data() + p * all.b.step + column * b_column;
        double sum = 0.0;
        for (std::int64_t i = 0; i < k; ++i) {
          sum += double{rounding(a[i * a_inner])} * rounding(b[i * b_inner]);
        }
        float& d =
            of_d[static_cast<std::size_t>(p * all.d.step + column * all.d.stride + row)];
        const double before = on.beta == 0.0F ? 0.0 : double{on.beta} * d;
        d = static_cast<float>(on.alpha * sum + before);
        if (has_bias) d += bias[static_cast<std::size_t>(row)];
        if (all.task.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) d = std::max(0.0F, d);
      }
    }
  }
  write_elements(of_d, on.d, all.d.element());
}

template <class Value>
bool read_attribute(Value& value, const void* source, std::size_t bytes) {
  if (bytes != sizeof value) return false;
  std::memcpy(&value, source, bytes);
  return true;
}

}  // namespace

class CublasDouble::State {
 public:
  explicit State(RecordingDriver& the_driver) : driver(the_driver) {}

  void report(const std::string& text) { driver.log().report("cublasLt: " + text); }

  // Nothing, with reports, if the descriptors do not say a product.
  std::optional<LtProblem> problem_of(cublasLtMatmulDesc_t task,
                                      const std::array<cublasLtMatrixLayout_t, 4>& named) {
    LtProblem all;
    const LtTask* const said = tasks.find(task, "product");
    bool is_right = said != nullptr;
    if (is_right) all.task = *said;
    const std::array places{&all.a, &all.b, &all.c, &all.d};
    for (std::size_t i = 0; i < named.size(); ++i) {
      const LtLayout* const layout = layouts.find(named[i], "product");
      is_right = is_right && layout != nullptr;
      if (layout != nullptr) *places[i] = *layout;
    }
    if (!is_right || !fits(all)) return std::nullopt;
    return all;
  }

  bool fits(const LtProblem& all) {
    const auto size = [](const LtLayout& layout, cublasOperation_t op) {
      return op == CUBLAS_OP_N ? std::pair(layout.rows, layout.columns)
                               : std::pair(layout.columns, layout.rows);
    };
    const auto [m, k] = size(all.a, all.task.a_op);
    const auto [inner, n] = size(all.b, all.task.b_op);
    if (k != inner || m != all.d.rows || n != all.d.columns || m * n * k == 0) {
      report(fmt::format("{} x {} times {} x {} is not {} x {}", m, k, inner, n, all.d.rows,
                         all.d.columns));
      return false;
    }
    if (!(all.c == all.d)) {
      report("a product in place needs the same layout twice");
      return false;
    }
    for (const LtLayout* layout : {&all.a, &all.b, &all.d}) {
      const bool is_right = layout->stride >= static_cast<std::int64_t>(layout->rows) &&
                            layout->count == all.d.count;
      if (is_right) continue;
      report(fmt::format("{} x {} with a stride of {}, {} of {}", layout->rows, layout->columns,
                         layout->stride, layout->count, all.d.count));
      return false;
    }
    const bool is_short = all.a.type == CUDA_R_16BF;
    if ((!is_short && all.a.type != CUDA_R_32F) || all.b.type != all.a.type ||
        (all.d.type != CUDA_R_32F && all.d.type != all.a.type) ||
        (is_short && all.task.compute != CUBLAS_COMPUTE_32F)) {
      report("types of operands, result and sums that do not go together");
      return false;
    }
    if (all.d.count > 1 && all.d.step < all.d.stride * static_cast<std::int64_t>(all.d.columns)) {
      report("matrices of the result overlap");
      return false;
    }
    return true;
  }

  bool is_aligned(const LtProblem& found, const std::array<const void*, 4>& operands) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto address = reinterpret_cast<std::uintptr_t>(operands[i]);
      if (address % found.preference.alignments[i] == 0) continue;
      report(fmt::format("operand {} is not aligned to {} bytes", i,
                         found.preference.alignments[i]));
      return false;
    }
    return true;
  }

  void queue(const LtProblem& all, const LtOperands& on, gpu::WorkMemory memory,
             gpu::StreamHandle stream) {
    std::vector<const void*> arrays;
    const auto add = [&](const void* first, std::int64_t bytes) {
      if (bytes == 0) return;
      arrays.push_back(first);
      arrays.push_back(static_cast<const std::byte*>(first) + bytes - 1);
    };
    add(on.a, all.a.bytes());
    add(on.b, all.b.bytes());
    add(on.d, all.d.bytes());
    if (all.task.bias != nullptr) {
      add(all.task.bias,
          static_cast<std::int64_t>(all.d.rows) * bytes_of_element(all.d.element()));
    }
    add(memory.data, static_cast<std::int64_t>(all.bytes));
    ++products;
    driver.queue_call(stream, "cublasLtMatmul", arrays, [=] {
      if (all.bytes > 0) spoil(memory.data, all.bytes);
      multiply_plainly(all, on);
    });
  }

  RecordingDriver& driver;
  HandleSet<cublasLtHandle_t, int> handles{driver.log(), "cublasLt handle"};
  HandleSet<cublasLtMatmulDesc_t, LtTask> tasks{driver.log(), "matmul descriptor"};
  HandleSet<cublasLtMatrixLayout_t, LtLayout> layouts{driver.log(), "matrix layout"};
  HandleSet<cublasLtMatmulPreference_t, LtPreference> preferences{driver.log(),
                                                                  "matmul preference"};
  std::vector<LtProblem> algorithms;  // one is known by its place here, and 1
  std::int64_t products = 0;
  std::size_t wanted_bytes = std::size_t{4} << 10U;
  bool has_algorithms = true;
};

namespace {

CublasDouble::State& cublas() {
  SPEEDO_ASSERT(active_cublas != nullptr);
  return *active_cublas;
}

cublasStatus_t set_task_attribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t name,
                                  const void* value, std::size_t bytes) {
  LtTask* const task = cublas().tasks.find(handle, "cublasLtMatmulDescSetAttribute");
  if (task == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  bool is_right = false;
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) is_right = read_attribute(task->a_op, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_TRANSB) is_right = read_attribute(task->b_op, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE) {
    is_right = read_attribute(task->epilogue, value, bytes);
  }
  if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
    is_right = read_attribute(task->bias, value, bytes);
  }
  return is_right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t set_layout_attribute(cublasLtMatrixLayout_t handle,
                                    cublasLtMatrixLayoutAttribute_t name, const void* value,
                                    std::size_t bytes) {
  LtLayout* const layout = cublas().layouts.find(handle, "cublasLtMatrixLayoutSetAttribute");
  if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  bool is_right = false;
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) {
    is_right = read_attribute(layout->count, value, bytes);
  }
  if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) {
    is_right = read_attribute(layout->step, value, bytes);
  }
  return is_right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t set_preference_attribute(cublasLtMatmulPreference_t handle,
                                        cublasLtMatmulPreferenceAttributes_t name,
                                        const void* value, std::size_t bytes) {
  LtPreference* const preference =
      cublas().preferences.find(handle, "cublasLtMatmulPreferenceSetAttribute");
  if (preference == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  bool is_right = false;
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    is_right = read_attribute(preference->bytes, value, bytes);
  }
  const int operand = name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (operand >= 0 && operand < 4) {
    is_right = read_attribute(preference->alignments[static_cast<std::size_t>(operand)], value,
                              bytes);
  }
  return is_right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

constexpr auto get_heuristic = [](
    cublasLtHandle_t handle, cublasLtMatmulDesc_t task, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* results,
    int* count) -> cublasStatus_t {
  CublasDouble::State& state = cublas();
  const LtPreference* const limits =
      state.preferences.find(preference, "cublasLtMatmulAlgoGetHeuristic");
  auto all = state.problem_of(task, {a, b, c, d});
  *count = 0;
  if (state.handles.find(handle, "cublasLtMatmulAlgoGetHeuristic") == nullptr ||
      limits == nullptr || !all || wanted < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!state.has_algorithms) return CUBLAS_STATUS_NOT_SUPPORTED;
  all->preference = *limits;
  all->bytes = std::min<std::size_t>(state.wanted_bytes, limits->bytes);
  state.algorithms.push_back(*all);
  results[0] = {};
  results[0].algo.data[0] = state.algorithms.size();
  results[0].workspaceSize = all->bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
};

constexpr auto queue_product = [](
    cublasLtHandle_t handle, cublasLtMatmulDesc_t task, const void* alpha, const void* a,
    cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
    const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
    cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* work,
    std::size_t work_bytes, cudaStream_t stream) -> cublasStatus_t {
  CublasDouble::State& state = cublas();
  const auto all = state.problem_of(task, {a_layout, b_layout, c_layout, d_layout});
  if (state.handles.find(handle, "cublasLtMatmul") == nullptr || !all) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const std::uint64_t number = algorithm->data[0];
  const bool is_known = number >= 1 && number <= state.algorithms.size();
  if (!is_known || !state.algorithms[number - 1].is_for(*all)) {
    state.report("the algorithm is of another problem");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const LtProblem& found = state.algorithms[number - 1];
  if (!state.is_aligned(found, {a, b, c, d})) return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_placed = reinterpret_cast<std::uintptr_t>(work) % 256 == 0;
  if (work_bytes < found.bytes || (found.bytes > 0 && (work == nullptr || !is_placed))) {
    state.report(fmt::format("{} bytes of working memory, {} needed", work_bytes, found.bytes));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (c != d) state.report("c is not d");
  if ((all->task.epilogue == CUBLASLT_EPILOGUE_DEFAULT) != (all->task.bias == nullptr)) {
    state.report("a bias without its epilogue, or an epilogue without its bias");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const LtOperands on{*static_cast<const float*>(alpha), *static_cast<const float*>(beta), a, b, d};
  LtProblem problem = found;
  problem.task.bias = all->task.bias;
  state.queue(problem, on, {work, work_bytes}, stream);
  return CUBLAS_STATUS_SUCCESS;
};

template <class Set, class Handle>
cublasStatus_t lt_destroyed(Set& set, Handle handle, const char* call) {
  return set.destroy(handle, call) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

}  // namespace

CublasDouble::CublasDouble(RecordingDriver& driver) : state_(std::make_unique<State>(driver)) {
  SPEEDO_ASSERT(active_cublas == nullptr);
  active_cublas = state_.get();
}

CublasDouble::~CublasDouble() { active_cublas = nullptr; }

std::int64_t CublasDouble::searches() const {
  return static_cast<std::int64_t>(state_->algorithms.size());
}
std::int64_t CublasDouble::products() const { return state_->products; }
void CublasDouble::set_wanted_bytes(std::size_t bytes) { state_->wanted_bytes = bytes; }
void CublasDouble::lack_algorithms() { state_->has_algorithms = false; }

gpu::CublasLtFunctions CublasDouble::functions() {
  gpu::CublasLtFunctions table;
  table.get_version = [] { return std::size_t{CUBLAS_VERSION}; };
  table.get_status_name = [](cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_INVALID_VALUE";
  };
  table.create = [](cublasLtHandle_t* handle) {
    *handle = cublas().handles.make();
    return CUBLAS_STATUS_SUCCESS;
  };
  table.destroy = [](cublasLtHandle_t handle) {
    return lt_destroyed(cublas().handles, handle, "cublasLtDestroy");
  };
  table.create_task = [](cublasLtMatmulDesc_t* task, cublasComputeType_t compute,
                         cudaDataType scale) {
    *task = cublas().tasks.make({compute, scale});
    return CUBLAS_STATUS_SUCCESS;
  };
  table.destroy_task = [](cublasLtMatmulDesc_t task) {
    return lt_destroyed(cublas().tasks, task, "cublasLtMatmulDescDestroy");
  };
  table.set_task = set_task_attribute;
  table.create_layout = [](cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                           std::uint64_t columns, std::int64_t stride) {
    *layout = cublas().layouts.make({type, rows, columns, stride});
    return CUBLAS_STATUS_SUCCESS;
  };
  table.destroy_layout = [](cublasLtMatrixLayout_t layout) {
    return lt_destroyed(cublas().layouts, layout, "cublasLtMatrixLayoutDestroy");
  };
  table.set_layout = set_layout_attribute;
  table.create_preference = [](cublasLtMatmulPreference_t* preference) {
    *preference = cublas().preferences.make();
    return CUBLAS_STATUS_SUCCESS;
  };
  table.destroy_preference = [](cublasLtMatmulPreference_t preference) {
    return lt_destroyed(cublas().preferences, preference, "cublasLtMatmulPreferenceDestroy");
  };
  table.set_preference = set_preference_attribute;
  table.get_algorithms = get_heuristic;
  table.multiply = queue_product;
  return table;
}

}  // namespace speedo::test
