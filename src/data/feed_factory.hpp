#pragma once

#include <memory>

#include <speedo/core/batch_feed.hpp>

namespace speedo {

// Opens what Data and HDF5Data layers name, read ahead on a thread of its own.
// Thread safety: open() may be called from any thread.
std::unique_ptr<FeedFactory> make_feed_factory();

}  // namespace speedo
