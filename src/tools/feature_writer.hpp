#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <speedo/core/net.hpp>

#include "data/convert.hpp"

namespace speedo {

class DatabaseWriter;

// The key of an image's features: its number in ten digits.
std::string feature_key(std::int64_t image);

// Puts what one blob holds for each image of a batch into a database, as Caffe's extract_features
// does: float Datums of channels, height and width, with feature_key().
class FeatureWriter {
 public:
  // Errors: kConfig if the net has no such blob, or one of more than four axes; kCannotWrite.
  static Result<FeatureWriter> create(const Net& net, const std::string& blob,
                                      const ConvertOptions& output);
  // The same, into a database that is there.
  static Result<FeatureWriter> create(const Net& net, const std::string& blob,
                                      std::unique_ptr<DatabaseWriter> database);
  FeatureWriter(FeatureWriter&&) noexcept;
  FeatureWriter& operator=(FeatureWriter&&) = delete;
  ~FeatureWriter();

  // After a forward pass of the net. Error: kCannotWrite.
  Result<void> add_batch(const Net& net);
  Result<void> commit();

  const std::string& blob() const { return blob_; }
  std::int64_t count() const { return count_; }  // of images so far

 private:
  FeatureWriter(std::string blob, std::unique_ptr<DatabaseWriter> database);

  std::string blob_;
  std::unique_ptr<DatabaseWriter> database_;
  std::int64_t count_ = 0;
};

}  // namespace speedo
