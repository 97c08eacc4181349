#pragma once

#include <filesystem>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Caffe's binary files. Reading: kNotFound, or kData for a file that is empty, cut short, of
// another kind or too large for the format (2 GiB). Writing replaces the file atomically:
// kCannotWrite.
Result<caffe::NetParameter> read_caffemodel(const std::filesystem::path& path);  // upgraded
Result<void> write_caffemodel(const std::filesystem::path& path, const caffe::NetParameter& net);

Result<caffe::SolverState> read_solverstate(const std::filesystem::path& path);
Result<void> write_solverstate(const std::filesystem::path& path, const caffe::SolverState& state);

// A mean image or another single array (.binaryproto).
Result<caffe::BlobProto> read_blob_file(const std::filesystem::path& path);
Result<void> write_blob_file(const std::filesystem::path& path, const caffe::BlobProto& blob);

}  // namespace speedo
