#pragma once

#include <functional>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// What `work` gives; kInternal, beginning with `what`, if it throws a standard exception.
Result<void> guarded(const std::string& what, const std::function<Result<void>()>& work);

}  // namespace speedo
