#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace caffe {
class WindowDataParameter;
}

namespace speedo {

// A rectangle of an image, from x1, y1 to x2, y2, both within it.
struct ImageWindow {
  std::uint32_t image = 0;  // of WindowFile::images
  std::int32_t label = 0;   // 0: background
  std::int32_t x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// Caffe's window file: images, each with windows that have a class and how much they overlap an
// object of it. Windows that overlap enough are foreground, those that do not are background, and
// what is between is left out.
struct WindowFile {
  std::string path;
  std::vector<std::string> images;
  std::int64_t channels = 0;  // of the images, all the same
  std::vector<ImageWindow> foreground, background;

  // With the thresholds of `parameter`. Errors: kNotFound; kData naming the line.
  static Result<WindowFile> read(const std::filesystem::path& path,
                                 const caffe::WindowDataParameter& parameter);
};

}  // namespace speedo
