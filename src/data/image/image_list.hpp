#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/remote_files.hpp>
#include <speedo/data/data_source.hpp>

#include "data/image/encoded_image.hpp"

namespace speedo {

// A text with a line "FILE LABEL" for each image, as Caffe's image lists are: the label is behind
// the last blank, names may have blanks; a line without one has label 0. Empty lines are passed
// over.
class ImageList {
 public:
  // Errors: kNotFound, kRefused; kData naming the line, also for a list without images.
  static Result<ImageList> read(const std::filesystem::path& path);

  std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  // Requires: 0 <= index < size().
  std::string_view name(std::int64_t index) const;
  std::int64_t label(std::int64_t index) const { return entry(index).label; }
  // "image list 'L' line 3", counted from 1.
  std::string place(std::int64_t index) const;

 private:
  struct Entry {
    std::size_t offset = 0;  // of the name, in the text
    std::uint32_t bytes = 0;
    std::int32_t label = 0;
  };
  ImageList(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}
  Result<void> add_line(std::size_t offset, std::size_t end);
  const Entry& entry(std::int64_t index) const { return entries_[static_cast<std::size_t>(index)]; }
  std::string place_at(std::size_t offset) const;

  std::string path_, text_;
  std::vector<Entry> entries_;
};

struct ImageListOptions {
  std::string root;                 // before each name, as behind_root() puts it
  std::filesystem::path base = {};  // second place to look for relative names
  ImageColor color = ImageColor::kColor;
  std::int64_t height = 0, width = 0;  // stretch images to these; 0: as they are
};

// The images of a list. Errors of read() name list, line and file.
class ImageListSource : public DataSource {
 public:
  ImageListSource(ImageList list, ImageListOptions options)
      : list_(std::move(list)), options_(std::move(options)) {}

  const ImageList& list() const { return list_; }
  std::int64_t size() const override { return list_.size(); }
  bool has_one_size() const override { return options_.height > 0; }
  Result<void> read(std::int64_t index, Record& record) override;
  void read_group(std::span<RecordRead> reads) override;

  // The bytes of an image's file. Errors as those of read().
  Result<std::string> read_image_file(std::int64_t index) const;

 private:
  std::string file_name(std::int64_t index) const {
    return behind_root(options_.root, std::string(list_.name(index)));
  }
  Error error_at(std::int64_t index, const Error& error) const;
  Result<void> finish(std::int64_t index, Result<void> read, Record& record) const;

  ImageList list_;
  ImageListOptions options_;
};

}  // namespace speedo
