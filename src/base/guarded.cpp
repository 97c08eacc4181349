#include "base/guarded.hpp"

#include <exception>

namespace speedo {

Result<void> guarded(const std::string& what, const std::function<Result<void>()>& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInternal, what + ": " + exception.what()};
  }
}

}  // namespace speedo
