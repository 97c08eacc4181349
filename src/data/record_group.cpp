#include "data/record_group.hpp"

#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

void read_images_together(
    std::span<const ImageRead> images, ImageColor color,
    const std::function<Result<std::shared_ptr<const std::string>>(std::size_t)>& read_file,
    const std::function<void(std::size_t, Result<void>)>& done) {
  for (std::size_t next = 0; next < images.size();) {
    std::vector<std::shared_ptr<const std::string>> files;
    std::vector<ImageDecoding> decodings;
    std::vector<std::size_t> decoded;
    for (std::size_t bytes = 0; next < images.size() && bytes < kGroupFileBytes; ++next) {
      auto file = read_file(next);
      if (!file) {
        done(next, std::move(file).error());
        continue;
      }
      files.push_back(*std::move(file));
      bytes += files.back()->size();
      decodings.push_back({std::as_bytes(std::span(*files.back())), images[next].record});
      decoded.push_back(next);
    }
    decode_images(decodings, color);
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      done(decoded[i], named_decoding(images[decoded[i]].name, std::move(decodings[i].outcome)));
    }
  }
}

RecordRead& GroupedRecords::next() {
  if (given_ == reads_.size()) read_group();
  return reads_[given_++];
}

// As many as the largest record of the group before suggests.
void GroupedRecords::read_group() {
  SPEEDO_ASSERT(done_ < source_.size());
  std::int64_t values = 0;
  for (const Record& record : records_) values = std::max(values, record.count());
  const std::int64_t together = values > 0 ? records_together(values) : 1;
  const std::int64_t count = std::min(together, source_.size() - done_);
  records_.resize(static_cast<std::size_t>(count));
  reads_.clear();
  for (Record& record : records_) reads_.push_back({done_++, &record});
  given_ = 0;
  source_.read_group(reads_);
}

}  // namespace speedo
