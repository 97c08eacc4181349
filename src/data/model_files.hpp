#pragma once

#include <filesystem>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Caffe's weight and state files, binary or HDF5. Reading looks at the content, not at the name.
// Writing replaces the file in one step. Errors: kNotFound, kData; kCannotWrite.
//
// From an HDF5 file come only layer names and blobs; a parameter that is shared and stored under
// another layer is missing, or is a blob without shape and values where later ones follow.

Result<caffe::NetParameter> read_model(const std::filesystem::path& path);
Result<void> write_model(const std::filesystem::path& path, const caffe::NetParameter& net,
                         caffe::SolverParameter::SnapshotFormat format);

Result<caffe::SolverState> read_solver_state(const std::filesystem::path& path);
Result<void> write_solver_state(const std::filesystem::path& path, const caffe::SolverState& state,
                                caffe::SolverParameter::SnapshotFormat format);

}  // namespace speedo
