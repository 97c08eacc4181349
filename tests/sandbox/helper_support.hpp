#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sandbox/deeds.hpp"
#include "sandbox/helper_pool.hpp"
#include "sandbox/helper_process.hpp"
#include "support/catch.hpp"

namespace speedo::test {

inline const std::string kHelperName = "deed_helper";

inline HelperOptions helper_options() {
  return {.program = SPEEDO_DEED_HELPER, .memory_bytes = std::uint64_t{64} << 20U};
}

// The input is not copied: it outlives the task.
inline HelperTask deed(Deed what, std::int64_t number = 0, std::string_view input = "") {
  return {.kind = static_cast<std::uint32_t>(what),
          .numbers = {number},
          .input = std::as_bytes(std::span(input)),
          .subject = "the deed"};
}

inline HelperLoan taken(HelperPool& pool) {
  auto loan = pool.take();
  if (!loan) FAIL(loan.error().message);
  return std::move(*loan);
}

inline std::unique_ptr<HelperProcess> started(HelperStarter& starter,
                                              const HelperOptions& options = helper_options()) {
  auto helper = HelperProcess::start(options, starter);
  if (!helper) FAIL(helper.error().message);
  return std::move(*helper);
}

inline std::string text_of(const HelperReply& reply) {
  return {reinterpret_cast<const char*>(reply.output.data()), reply.output.size()};
}

}  // namespace speedo::test
