#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/data/data_source.hpp>

#include "data/bad_records.hpp"
#include "data/batch_reader.hpp"
#include "data/image/window_file.hpp"
#include "data/scratch_pool.hpp"

namespace caffe {
class TransformationParameter;
}

namespace speedo {

// What becomes of a window: a square of crop x crop pixels, less the mean, times the scale.
struct WindowShape {
  std::int64_t crop = 0;
  std::int64_t context_pad =
      0;                // so many of the square's pixels on each side are around the window
  bool square = false;  // the window is made a square before it is stretched
  bool mirror = false;  // by the toss of a coin
  float scale = 1.0F;
  std::vector<float> mean_values;  // none, or one a channel
  std::vector<float> mean_image;   // none, or one a pixel
  std::int64_t mean_height = 0, mean_width = 0;
};

// Errors: kConfig for contradictory fields; kNotFound, kData for the mean file.
Result<WindowShape> window_shape(const caffe::WindowDataParameter& window,
                                 const caffe::TransformationParameter& transform,
                                 const std::filesystem::path& base);

// The stream of a WindowData layer: each batch holds background windows, then foreground windows,
// all drawn at random from the seed and the place in the stream. Tops: windows and classes.
class WindowBatchReader : public BatchReader {
 public:
  struct Options {
    std::int64_t batch_size = 1;
    std::int64_t foreground = 0;  // windows of a batch
    std::string root;             // before each image's path, as it is
    std::filesystem::path base;   // second place to look for relative paths
    bool cache_images = false;    // read each image's file once
    std::uint64_t seed = 0;
    OnBadRecord on_bad_record = OnBadRecord::kAbort;
    std::shared_ptr<FeedMeter> meter = {};
  };
  // Errors: kConfig; kData for a file without windows of a kind that batches need.
  static Result<std::unique_ptr<BatchReader>> create(WindowFile file, const WindowShape& shape,
                                                     const Options& options);

  const std::vector<Shape>& shapes() const override { return shapes_; }
  std::uint64_t record_count() const override {
    return file_.foreground.size() + file_.background.size();
  }
  std::int64_t part_count() const override { return (options_.batch_size - 1) / part_windows_ + 1; }
  bool takes_threads() const override { return true; }
  std::int64_t scratch_bytes() const override;
  Result<void> read(std::uint64_t batch, std::int64_t part, BatchTops& tops) override;

 private:
  // A place of a batch, and the window that is to be there.
  struct Place {
    Random random;
    bool is_foreground = false;
    std::uint64_t record = 0;
    const ImageWindow* window = nullptr;
    bool mirror = false;
    Record image = {};
    Result<void> outcome = {};  // of reading the image
  };
  struct Desk {
    std::vector<Place> places;
    Record window;
  };
  WindowBatchReader(WindowFile file, const WindowShape& shape, const Options& options);
  Result<void> check() const;
  void draw(Place& place) const;
  void read_images(std::span<Place> places);
  Result<void> fill(Place& place, Record& window, std::span<float> target);
  Result<void> fill_or_next(Place& place, Record& window, std::span<float> target);
  Result<std::shared_ptr<const std::string>> image_file(std::uint32_t image);

  WindowFile file_;
  WindowShape shape_;
  Options options_;
  std::vector<Shape> shapes_;
  std::int64_t part_windows_ = 1;  // whose images are read together
  ScratchPool<Desk> desks_;
  BadRecords bad_records_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<const std::string>> cached_;  // guarded by mutex_
};

}  // namespace speedo
