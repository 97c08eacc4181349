#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"
#include "data/random_file.hpp"
#include "formats/safetensors_header.hpp"

namespace speedo {

// Files of named arrays as Hugging Face's safetensors library reads and writes them:
//
//   8 bytes     N, the length of the header, little-endian
//   N bytes     JSON: {"NAME": {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...,
//               "__metadata__": {"KEY": "TEXT", ...}}, with blanks behind it
//   the rest    data, little-endian; offsets count from its beginning
class SafetensorsFile {
 public:
  // Errors: kNotFound, kRefused; kData, naming file and tensor, for what is no such file.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::string& name() const { return file_.name(); }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }

  // The values of one of tensors(). Error: kData. Requires: as many `target` values as its shape
  // counts.
  Result<void> read(const StoredTensor& tensor, std::span<float> target) const;

 private:
  SafetensorsFile(RandomFile file, SafetensorsHeader header, std::uint64_t data_offset);

  RandomFile file_;
  SafetensorsHeader header_;
  std::uint64_t data_offset_;
};

// Writes the blobs of a model's layers by weight_name(), as F32; a layer's without blobs are left
// out. Errors: kCannotWrite; kData, if a blob is damaged or two have one name.
Result<void> write_safetensors(const std::filesystem::path& path, const caffe::NetParameter& model,
                               const std::map<std::string, std::string>& metadata);

}  // namespace speedo
