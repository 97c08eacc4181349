#pragma once

#include <memory>

#include <speedo/core/batch_feed.hpp>

#include "data/prefetch_feed.hpp"

namespace speedo {

// Opens what Data, ImageData, WindowData and HDF5Data layers name, read ahead on threads of its
// own: records, which are decoded, by as many as `threads`, at most kDecodeThreadsMax; what a batch
// holds does not depend on it. Requires: threads >= 1. Thread safety: open() may be called from any
// thread.
std::unique_ptr<FeedFactory> make_feed_factory(int threads = 1,
                                               OnBadRecord on_bad_record = OnBadRecord::kAbort);

}  // namespace speedo
