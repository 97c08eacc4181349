#include "gpu/gemm/gemm.hpp"

#include <utility>

#include <speedo/base/assert.hpp>

#include "gpu/elementwise/elementwise.hpp"

namespace speedo::gpu {
namespace {

// Without inner elements a product is 0.
void scale_products(const GemmContext& context, const Backend::Gemm& product,
                    const GemmBatch& batch, float* c) {
  const std::int64_t count = product.shape.m * product.shape.n;
  for (std::int64_t i = 0; i < batch.count; ++i) {
    float* const at = c + i * batch.c_step;
    if (product.beta == 0.0F) {
      fill(context.queue, count, 0.0F, at);
    } else {
      map(context.queue, affine(product.beta), count, at, at);
    }
  }
}

// Row major read as column major is transposed: c' = op(b)' op(a)'.
BlasProducts column_major(const Backend::Gemm& product, const GemmBatch& batch) {
  const auto [m, n, k] = product.shape;
  const bool a_turned = product.a_op == Op::kTranspose, b_turned = product.b_op == Op::kTranspose;
  return {.m = n,
          .n = m,
          .k = k,
          .count = batch.count,
          .a = {b_turned, b_turned ? k : n, batch.b_step},
          .b = {a_turned, a_turned ? m : k, batch.a_step},
          .d = {false, n, batch.c_step}};
}

void multiply(const GemmContext& context, const BlasProducts& products,
              const BlasOperands& operands) {
  Driver& driver = context.queue.driver;
  const auto memory = context.workspace.take(context.blas.workspace_bytes());
  if (!memory) return driver.fail(memory.error());
  driver.bind_thread();
  auto queued = context.blas.multiply(context.queue.stream, products, operands, *memory);
  if (!queued) driver.fail(std::move(queued).error());
}

}  // namespace

void gemm(const GemmContext& context, const Backend::Gemm& product, const float* a, const float* b,
          float* c) {
  gemm(context, product, GemmBatch{}, a, b, c);
}

void gemm(const GemmContext& context, const Backend::Gemm& product, const GemmBatch& batch,
          const float* a, const float* b, float* c) {
  const auto [m, n, k] = product.shape;
  if (m == 0 || n == 0 || batch.count == 0) return;
  if (k == 0) return scale_products(context, product, batch, c);
  multiply(context, column_major(product, batch), {product.alpha, b, a, product.beta, c});
}

void gemm(const GemmContext& context, const Backend::Gemm& product, const GemmEpilogue& epilogue,
          const GemmOperands& operands) {
  const auto [m, n, k] = product.shape;
  SPEEDO_ASSERT(k > 0);
  if (m == 0 || n == 0) return;
  BlasProducts products = column_major(product, GemmBatch{});
  products.a.type = products.b.type = operands.factors;
  products.d.type = operands.result;
  if (epilogue.bias != nullptr) {
    products.epilogue = epilogue.rectifies ? BlasEpilogue::kBiasRelu : BlasEpilogue::kBias;
  }
  multiply(context, products,
           {product.alpha, operands.b, operands.a, product.beta, operands.c, epilogue.bias});
}

}  // namespace speedo::gpu
