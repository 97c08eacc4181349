#pragma once

#include <filesystem>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// The HDF5 forms of model_files.hpp.
Result<caffe::NetParameter> read_model_hdf5(const std::filesystem::path& path);
Result<void> write_model_hdf5(const std::filesystem::path& path, const caffe::NetParameter& net);
Result<caffe::SolverState> read_solver_state_hdf5(const std::filesystem::path& path);
Result<void> write_solver_state_hdf5(const std::filesystem::path& path,
                                     const caffe::SolverState& state);

}  // namespace speedo
