#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>

#include "support/deferred_device.hpp"

namespace speedo {

// The operations of `inner`, queued on a DeferredDevice over its device, whose memory is the
// host's. Arguments are taken by value; the results are the same to the bit.
std::unique_ptr<Backend> make_deferred_backend(std::unique_ptr<Backend> inner,
                                               DeferredOrder order = DeferredOrder::kNothingElse);

}  // namespace speedo
