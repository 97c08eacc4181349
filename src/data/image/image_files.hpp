#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

namespace speedo {

// The binary files in which MNIST and CIFAR are published, read as they are.

// MNIST's idx pair, plain or gzip-compressed. Errors: kNotFound; kData for a bad magic, sizes that
// do not fit the files, or image and label counts that differ.
Result<std::unique_ptr<DataSource>> open_idx(const std::filesystem::path& images,
                                             const std::filesystem::path& labels);

// "train-images-idx3-ubyte" -> "train-labels-idx1-ubyte", in the same folder.
std::filesystem::path idx_labels_beside(const std::filesystem::path& images);

// CIFAR-10's binary version: one label byte, then 32x32 red, green and blue bytes. Several files
// are one source, in the order given. Errors: kNotFound; kData for a size that is no whole number
// of records. The planes stay in this order, as in Caffe's own CIFAR databases.
Result<std::unique_ptr<DataSource>> open_cifar(const std::vector<std::filesystem::path>& files);

// What a file looks like from its first bytes and size.
bool looks_like_idx_images(const std::filesystem::path& path);
bool looks_like_cifar(const std::filesystem::path& path);

}  // namespace speedo
