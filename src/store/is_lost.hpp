#pragma once

#include <speedo/base/result.hpp>

namespace speedo {

// Of a record, or a chunk of one, that was there once: the store has it no more, or not as it was
// put.
inline bool is_lost(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kCorrupt;
}

}  // namespace speedo
