#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/store/store_address.hpp>

namespace speedo {

// Opens a job's store with what credentials the process has: masters and workers handle addresses.
using OpenStore = std::function<Result<std::shared_ptr<ParameterStore>>(const StoreAddress& address,
                                                                         const std::string& job)>;

// What ends the waiting for a store.
struct StoreWait {
  std::chrono::seconds store_timeout{0};  // of waiting for one that is out of reach
  std::function<std::optional<std::string>()> poll_stop;  // a reason: wait no longer
  Platform* platform = &real_platform();
};
// As `open`, again and again while the error is one that time may mend; the log says at once what
// is waited for. Blocking. Errors: those of `open` that time does not mend; kUnavailable if the
// wait was over or stopped.
OpenStore waiting_opener(OpenStore open, StoreWait wait);

}  // namespace speedo
