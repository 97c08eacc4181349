// Matrix products by cuBLASLt: what it is told against the reference backend, plans, memory,
// planted faults.

#include <cstdint>
#include <vector>

#include <speedo/base/random.hpp>

#include "gpu/library_bench.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo::gpu {
namespace {

using Shape = Backend::GemmShape;

struct Operands {
  explicit Operands(const Shape& shape)
      : a(library_values(shape.m * shape.k, 1)),
        b(library_values(shape.k * shape.n, 2)),
        c(library_values(shape.m * shape.n, 3)) {}
  std::vector<float> a, b, c;
};

std::vector<float> reference_product(const Backend::Gemm& product, Operands operands) {
  const auto reference = make_reference_backend();
  reference->gemm(product, operands.a.data(), operands.b.data(), operands.c.data());
  return operands.c;
}

// By a bench; with beta 0 c holds NaNs before.
std::vector<float> library_product(LibraryBench& bench, const Backend::Gemm& product,
                                   const Operands& operands, std::int64_t shift = 0) {
  const std::int64_t count = product.shape.m * product.shape.n;
  float* const c =
      product.beta == 0.0F ? bench.blank(count, shift) : bench.put(operands.c, shift);
  gemm(bench.products(), product, bench.put(operands.a, shift), bench.put(operands.b, shift), c);
  REQUIRE(bench.driver().check().has_value());
  return bench.get(c, count);
}

TEST_CASE("products by cuBLASLt agree with the reference") {
  const Shape shape =
      GENERATE(Shape{1, 1, 1}, Shape{3, 5, 7}, Shape{64, 10, 50}, Shape{17, 29, 33},
               Shape{5, 4, 0}, Shape{0, 3, 2}, Shape{3, 0, 2}, Shape{2, 30, 25});
  const auto a_op = GENERATE(Op::kNone, Op::kTranspose);
  const auto b_op = GENERATE(Op::kNone, Op::kTranspose);
  const std::int64_t shift = GENERATE(0, 1, 4);
  CAPTURE(shape.m, shape.n, shape.k, a_op, b_op, shift);
  const Operands operands(shape);
  LibraryBench bench;
  for (const float beta : {0.0F, 1.0F, -0.5F}) {
    const Backend::Gemm product{a_op, b_op, shape, 0.7F, beta};
    require_close(kProductError, library_product(bench, product, operands, shift),
                  reference_product(product, operands));
  }
  CHECK(bench.violations().empty());
}

TEST_CASE("random products by cuBLASLt agree with the reference") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2, 3})));
  CAPTURE(seed);
  Random random(seed);
  LibraryBench bench({.driver = {.seed = seed}});
  const auto size = [&] { return static_cast<std::int64_t>(1 + random.below(40)); };
  for (int i = 0; i < 40; ++i) {
    const Shape shape{size(), size(), size()};
    const auto op = [&] { return random.below(2) == 0 ? Op::kNone : Op::kTranspose; };
    const Backend::Gemm product{op(), op(), shape, random.uniform(-2.0F, 2.0F),
                                random.below(3) == 0 ? 0.0F : random.uniform(-1.0F, 1.0F)};
    CAPTURE(shape.m, shape.n, shape.k, product.a_op, product.b_op, product.beta);
    const Operands operands(shape);
    require_close(kProductError, library_product(bench, product, operands),
                  reference_product(product, operands));
  }
  CHECK(bench.violations().empty());
}

TEST_CASE("several products at once, one factor the same for all") {
  const Shape shape{5, 6, 7};
  const std::int64_t count = GENERATE(1, 2, 5);
  const Backend::Gemm product{Op::kNone, Op::kTranspose, shape, 1.0F, 0.0F};
  LibraryBench bench;
  const auto a = library_values(shape.m * shape.k, 1);
  const auto b = library_values(count * shape.k * shape.n, 2);
  float* const c = bench.blank(count * shape.m * shape.n);
  gemm(bench.products(), product, {count, 0, shape.k * shape.n, shape.m * shape.n}, bench.put(a),
       bench.put(b), c);
  const auto got = bench.get(c, count * shape.m * shape.n);
  const auto reference = make_reference_backend();
  std::vector<float> expected(got.size());
  for (std::int64_t i = 0; i < count; ++i) {
    reference->gemm(product, a.data(), b.data() + i * shape.k * shape.n,
                    expected.data() + i * shape.m * shape.n);
  }
  require_close(kProductError, got, expected);
  CHECK(bench.violations().empty());
}

TEST_CASE("an algorithm is looked for once for each kind of product") {
  LibraryBench bench;
  const Backend::Gemm product{Op::kNone, Op::kNone, {8, 12, 16}, 1.0F, 0.0F};
  const Operands operands(product.shape);
  for (int i = 0; i < 5; ++i) library_product(bench, product, operands);
  CHECK(bench.cublas().searches() == 1);
  CHECK(bench.cublas().products() == 5);
  Backend::Gemm other = product;
  other.alpha = 2.0F, other.beta = 1.0F;
  library_product(bench, other, operands);
  CHECK(bench.cublas().searches() == 1);
  library_product(bench, product, operands, 1);  // less aligned
  CHECK(bench.cublas().searches() == 2);
  other.b_op = Op::kTranspose;
  library_product(bench, other, operands);
  CHECK(bench.cublas().searches() == 3);
  CHECK(bench.blas().plans() == 3);
  CHECK(bench.violations().empty());
}

TEST_CASE("a product that wants more working memory than there is takes what there is") {
  LibraryBench bench;
  bench.cublas().set_wanted_bytes(std::size_t{1} << 40U);
  const Backend::Gemm product{Op::kNone, Op::kNone, {8, 12, 16}, 1.0F, 0.0F};
  const Operands operands(product.shape);
  require_close(kProductError, library_product(bench, product, operands),
                reference_product(product, operands));
  CHECK(bench.workspace().bytes() == static_cast<std::int64_t>(bench.blas().workspace_bytes()));
  CHECK(bench.violations().empty());
}

TEST_CASE("operands are rounded as the precision says, and never in float32") {
  const auto [arithmetic, low, high] = GENERATE(table<Arithmetic, double, double>(
      {{Arithmetic::kFloat32, 0.0, 1e-13}, {Arithmetic::kTf32, 1e-9, 1e-6},
       {Arithmetic::kBfloat16, 1e-7, 1e-4}, {Arithmetic::kFloat16, 1e-9, 1e-6}}));
  LibraryBench bench({.dnn = {.arithmetic = arithmetic}});
  const Backend::Gemm product{Op::kNone, Op::kNone, {16, 16, 64}, 1.0F, 0.0F};
  const Operands operands(product.shape);
  const double error = squared_error(library_product(bench, product, operands),
                                     reference_product(product, operands));
  CHECK(error >= low);
  CHECK(error <= high);
}

TEST_CASE("what cuBLASLt cannot do is an error of the driver") {
  LibraryBench bench;
  bench.cublas().lack_algorithms();
  const Operands operands({2, 3, 4});
  float* const c = bench.blank(6);
  gemm(bench.products(), {Op::kNone, Op::kNone, {2, 3, 4}, 1.0F, 0.0F}, bench.put(operands.a),
       bench.put(operands.b), c);
  const auto state = bench.driver().check();
  REQUIRE(!state.has_value());
  CHECK(state.error().code == ErrorCode::kUnsupported);
  CHECK(state.error().message == "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST_CASE("another version of cuBLASLt is named") {
  LibraryBench bench;
  CublasLtFunctions functions = test::CublasDouble::functions();
  functions.get_version = [] { return std::size_t{120205}; };
  const auto made = make_cublas_lt(functions, {});
  REQUIRE(!made.has_value());
  CHECK(made.error().code == ErrorCode::kMismatch);
  CHECK(made.error().message.find("cuBLASLt 12.2.5 is here") != std::string::npos);
}

// Faults of the calls, and what the double says to them.
struct BlasFault {
  const char* name;
  void (*plant)(CublasLtFunctions&);
  const char* said;
};

std::vector<BlasFault> blas_faults() {
  return {
      {"a leading dimension of another matrix",
       [](CublasLtFunctions& lt) {
         lt.create_layout = [](cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                               std::uint64_t columns, std::int64_t stride) {
           return test::CublasDouble::functions().create_layout(made, type, rows, columns,
                                                                stride - 1);
         };
       },
       "with a stride of"},
      {"a leading dimension beyond the array",
       [](CublasLtFunctions& lt) {
         lt.create_layout = [](cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                               std::uint64_t columns, std::int64_t stride) {
           return test::CublasDouble::functions().create_layout(made, type, rows, columns,
                                                                stride + 1);
         };
       },
       "leaves block"},
      {"a factor of another type",
       [](CublasLtFunctions& lt) {
         lt.create_layout = [](cublasLtMatrixLayout_t* made, cudaDataType, std::uint64_t rows,
                               std::uint64_t columns, std::int64_t stride) {
           const cudaDataType type = rows == 5 && columns == 7 ? CUDA_R_16BF : CUDA_R_32F;
           return test::CublasDouble::functions().create_layout(made, type, rows, columns, stride);
         };
       },
       "do not go together"},
      {"rows and columns changed about",
       [](CublasLtFunctions& lt) {
         lt.create_layout = [](cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                               std::uint64_t columns, std::int64_t stride) {
           return test::CublasDouble::functions().create_layout(made, type, columns, rows, stride);
         };
       },
       "is not"},
      {"a transposition forgotten",
       [](CublasLtFunctions& lt) {
         lt.set_task = [](cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
                          std::size_t) { return CUBLAS_STATUS_SUCCESS; };
       },
       "is not"},
      {"too little working memory",
       [](CublasLtFunctions& lt) {
         lt.multiply = [](cublasLtHandle_t handle, cublasLtMatmulDesc_t task, const void* alpha,
                          const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                          cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                          cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                          const cublasLtMatmulAlgo_t* algorithm, void* work, std::size_t,
                          cudaStream_t stream) {
           return test::CublasDouble::functions().multiply(handle, task, alpha, a, a_layout, b,
                                                           b_layout, beta, c, c_layout, d, d_layout,
                                                           algorithm, work, 1000, stream);
         };
       },
       "bytes of working memory"},
      {"operands that are less aligned than was said",
       [](CublasLtFunctions& lt) {
         lt.set_preference = [](cublasLtMatmulPreference_t handle,
                                cublasLtMatmulPreferenceAttributes_t name, const void* value,
                                std::size_t bytes) {
           if (name != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_SUCCESS;
           return test::CublasDouble::functions().set_preference(handle, name, value, bytes);
         };
       },
       "is not aligned"},
      {"a descriptor that is destroyed before its use",
       [](CublasLtFunctions& lt) {
         lt.get_algorithms = [](cublasLtHandle_t handle, cublasLtMatmulDesc_t task,
                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                cublasLtMatmulPreference_t preference, int wanted,
                                cublasLtMatmulHeuristicResult_t* results, int* count) {
           const auto lt_double = test::CublasDouble::functions();
           const auto status = lt_double.get_algorithms(handle, task, a, b, c, d, preference,
                                                        wanted, results, count);
           lt_double.destroy_layout(a);
           return status;
         };
       },
       "the matrix layout is gone"},
      {"descriptors that are left",
       [](CublasLtFunctions& lt) {
         lt.destroy_layout = [](cublasLtMatrixLayout_t) { return CUBLAS_STATUS_SUCCESS; };
       },
       "a matrix layout was never destroyed"},
      {"an algorithm of another product",
       [](CublasLtFunctions& lt) {
         lt.get_algorithms = [](cublasLtHandle_t handle, cublasLtMatmulDesc_t task,
                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                cublasLtMatmulPreference_t preference, int wanted,
                                cublasLtMatmulHeuristicResult_t* results, int* count) {
           static cublasLtMatmulHeuristicResult_t first = {};
           const auto status = test::CublasDouble::functions().get_algorithms(
               handle, task, a, b, c, d, preference, wanted, results, count);
           if (results->algo.data[0] == 1) first = *results;
           *results = first;
           return status;
         };
       },
       "the algorithm is of another problem"},
  };
}

TEST_CASE("planted faults of products are found") {
  const BlasFault fault = GENERATE(from_range(blas_faults()));
  CAPTURE(fault.name);
  const auto log = [&] {
    LibraryBench bench({.change_cublas = fault.plant});
    const Operands first({3, 5, 7}), second({7, 3, 4});
    float* const places[] = {bench.put(first.a, 1),  bench.put(first.b, 1),
                             bench.put(first.c, 1),  bench.put(second.a, 1),
                             bench.put(second.b, 1), bench.put(second.c, 1)};
    const auto multiply = [&](const Shape& shape, float* const* of) {
      gemm(bench.products(), {Op::kTranspose, Op::kNone, shape, 1.0F, 1.0F}, of[0], of[1], of[2]);
    };
    multiply({3, 5, 7}, places);
    multiply({7, 3, 4}, places + 3);
    bench.driver().synchronize(bench.queue().stream);
    return bench.shared_log();
  }();
  INFO((log->violations().empty() ? std::string("nothing") : log->violations().front()));
  CHECK(log->has(fault.said));
}

TEST_CASE("working memory that is freed while products use it is found") {
  LibraryBench bench;
  const Operands operands({3, 5, 7});
  float* const a = bench.put(operands.a);
  float* const b = bench.put(operands.b);
  float* const c = bench.put(operands.c);
  gemm(bench.products(), {Op::kNone, Op::kNone, {3, 5, 7}, 1.0F, 1.0F}, a, b, c);
  bench.workspace().reserve(2 * bench.blas().workspace_bytes());
  REQUIRE(bench.workspace().provide().has_value());  // waits before it frees
  CHECK(bench.violations().empty());
  auto memory = bench.driver().allocate(bench.blas().workspace_bytes());
  REQUIRE(memory.has_value());
  const BlasProducts products{5, 3, 7, 1, {false, 5, 0}, {false, 7, 0}, {false, 5, 0}};
  REQUIRE(bench.blas()
              .multiply(bench.queue().stream, products, {1.0F, b, a, 0.0F, c},
                        {*memory, bench.blas().workspace_bytes()})
              .has_value());
  bench.driver().free(*memory);
  CHECK(bench.found("is queued, which uses it"));
}

}  // namespace
}  // namespace speedo::gpu
