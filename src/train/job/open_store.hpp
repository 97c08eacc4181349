#pragma once

#include <functional>
#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/store/store_address.hpp>

namespace speedo {

// Opens a job's store with what credentials the process has: masters and workers handle addresses.
using OpenStore = std::function<Result<std::shared_ptr<ParameterStore>>(const StoreAddress& address,
                                                                         const std::string& job)>;

}  // namespace speedo
