#pragma once

#include <memory>

#include <speedo/core/batch_sink.hpp>

namespace speedo {

// Opens the files that HDF5Output layers name. Each may be open once at a time.
// Thread safety: open() may be called from any thread.
std::unique_ptr<SinkFactory> make_sink_factory();

}  // namespace speedo
