#pragma once

#include <filesystem>
#include <memory>

#include <speedo/base/result.hpp>

#include "data/hdf5/hdf5_access.hpp"
#include "sandbox/helper_pool.hpp"

namespace speedo {

// The file, opened here (below the input roots) and read by the helper, which it keeps. Errors:
// kNotFound, kRefused, kData; as HelperLoan::run().
Result<std::unique_ptr<Hdf5Access>> open_hdf5_in_helper(HelperLoan helper,
                                                        const std::filesystem::path& path);

}  // namespace speedo
