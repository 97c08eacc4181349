#include "data/image/window_batch_reader.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/remote_files.hpp>

#include "base/log.hpp"
#include "base/read_found.hpp"
#include "caffe.pb.h"
#include "data/claimed_size.hpp"
#include "data/image/encoded_image.hpp"
#include "data/image/mean.hpp"
#include "data/image/resize.hpp"
#include "data/record_group.hpp"

namespace speedo {

namespace {

Error bad_window_field(std::string what) { return {ErrorCode::kConfig, std::move(what)}; }

// A side of a window: which of the image's pixels it takes, and where they lie in the square.
struct Side {
  std::int64_t first = 0, last = 0;  // of the image
  std::int64_t pad = 0, size = 0;    // of the square: left free before them, and taken by them
};

// A side grown around its middle by the context that is to be seen, cut where the image ends.
Side grown_side(float middle, float half, const WindowShape& shape, std::int64_t image_size,
                bool mirror) {
  const auto crop = static_cast<float>(shape.crop);
  const float context = crop / (crop - 2.0F * static_cast<float>(shape.context_pad));
  Side side;
  side.first = std::llround(middle - half * context);
  side.last = std::llround(middle + half * context);
  const std::int64_t whole = side.last - side.first + 1;
  const std::int64_t before = std::max<std::int64_t>(0, -side.first);
  const std::int64_t behind = std::max<std::int64_t>(0, side.last - image_size + 1);
  side.first += before;
  side.last -= behind;
  const float scale = crop / static_cast<float>(whole);
  const auto scaled = [scale](std::int64_t pixels) {
    return static_cast<std::int64_t>(std::llround(static_cast<float>(pixels) * scale));
  };
  side.size = scaled(side.last - side.first + 1);
  side.pad = scaled(mirror ? behind : before);
  side.size = std::min(side.size, shape.crop - side.pad);
  return side;
}

struct Sides {
  Side across, down;
};

Sides sides_of(const ImageWindow& window, const WindowShape& shape, const Record& image,
               bool mirror) {
  if (shape.context_pad == 0 && !shape.square) {
    return {{window.x1, window.x2, 0, shape.crop}, {window.y1, window.y2, 0, shape.crop}};
  }
  float half_width = static_cast<float>(std::int64_t{window.x2} - window.x1 + 1) / 2.0F;
  float half_height = static_cast<float>(std::int64_t{window.y2} - window.y1 + 1) / 2.0F;
  const float middle_x = static_cast<float>(window.x1) + half_width;
  const float middle_y = static_cast<float>(window.y1) + half_height;
  if (shape.square) half_width = half_height = std::max(half_width, half_height);
  return {grown_side(middle_x, half_width, shape, image.width, mirror),
          grown_side(middle_y, half_height, shape, image.height, false)};
}

bool lies_in(const Side& side, std::int64_t image_size) {
  return side.first >= 0 && side.first <= side.last && side.last < image_size && side.size > 0;
}

void cut(const Record& image, const Sides& sides, Record& window) {
  window.channels = image.channels;
  window.height = sides.down.last - sides.down.first + 1;
  window.width = sides.across.last - sides.across.first + 1;
  window.bytes.resize(static_cast<std::size_t>(window.count()));
  std::uint8_t* target = window.bytes.data();
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t y = sides.down.first; y <= sides.down.last; ++y) {
      const std::uint8_t* row = image.bytes.data() + (c * image.height + y) * image.width;
      target = std::copy_n(row + sides.across.first, window.width, target);
    }
  }
}

// Into the square, whose free pixels stay 0.
void put(const Record& window, const Sides& sides, bool mirror, const WindowShape& shape,
         std::span<float> target) {
  std::fill(target.begin(), target.end(), 0.0F);
  const std::int64_t mean_left = (shape.mean_width - shape.crop) / 2;
  const std::int64_t mean_top = mean_left;
  for (std::int64_t c = 0; c < window.channels; ++c) {
    for (std::int64_t y = 0; y < window.height; ++y) {
      const std::uint8_t* row = window.bytes.data() + (c * window.height + y) * window.width;
      const std::int64_t down = y + sides.down.pad;
      for (std::int64_t x = 0; x < window.width; ++x) {
        const std::int64_t along = x + sides.across.pad;
        float mean = 0.0F;
        if (!shape.mean_image.empty()) {
          const std::int64_t at =
              (c * shape.mean_height + down + mean_top) * shape.mean_width + along + mean_left;
          mean = shape.mean_image[static_cast<std::size_t>(at)];
        } else if (!shape.mean_values.empty()) {
          mean = shape.mean_values[shape.mean_values.size() == 1 ? 0 : static_cast<std::size_t>(c)];
        }
        const float pixel = row[mirror ? window.width - 1 - x : x];
        target[static_cast<std::size_t>((c * shape.crop + down) * shape.crop + along)] =
            (pixel - mean) * shape.scale;
      }
    }
  }
}

}  // namespace

Result<WindowShape> window_shape(const caffe::WindowDataParameter& window,
                                 const caffe::TransformationParameter& transform,
                                 const std::filesystem::path& base) {
  WindowShape shape;
  shape.crop = transform.crop_size();
  shape.context_pad = window.context_pad();
  shape.square = window.crop_mode() == "square";
  shape.mirror = transform.mirror();
  shape.scale = window.scale();
  if (transform.scale() != 1.0F) {
    SPEEDO_WARN("A WindowData layer does not use transform_param {{ scale }}, as in Caffe, where "
                "the scale of old nets is moved to: its values are multiplied by "
                "window_data_param {{ scale }}, {:g} here",
                shape.scale);
  }
  shape.mean_values.assign(transform.mean_value().begin(), transform.mean_value().end());
  if (shape.crop < 1) return bad_window_field("WindowData needs transform_param { crop_size }");
  if (!shape.square && window.crop_mode() != "warp") {
    return bad_window_field(
        fmt::format("crop_mode is '{}', but must be warp or square", window.crop_mode()));
  }
  if (2 * shape.context_pad >= shape.crop) {
    return bad_window_field(fmt::format("context_pad {} leaves nothing of crop_size {}",
                                        shape.context_pad, shape.crop));
  }
  if (!(window.fg_fraction() >= 0.0F && window.fg_fraction() <= 1.0F)) {
    return bad_window_field("fg_fraction must be between 0 and 1");
  }
  if (!transform.has_mean_file()) return shape;
  if (!shape.mean_values.empty()) {
    return bad_window_field("mean_file and mean_value exclude each other");
  }
  SPEEDO_ASSIGN(MeanImage mean, read_found(transform.mean_file(), base, read_mean));
  shape.mean_height = mean.dims.height;
  shape.mean_width = mean.dims.width;
  if (shape.mean_height != shape.mean_width || shape.mean_width < shape.crop) {
    return bad_window_field(
        fmt::format("the mean file is of {}x{} pixels, but a square of {} at "
                    "least is needed",
                    shape.mean_height, shape.mean_width, shape.crop));
  }
  shape.mean_image = std::move(mean.values);
  return shape;
}

WindowBatchReader::WindowBatchReader(WindowFile file, const WindowShape& shape,
                                     const Options& options)
    : file_(std::move(file)),
      shape_(shape),
      options_(options),
      bad_records_(options.on_bad_record, options.meter) {}

Result<void> WindowBatchReader::check() const {
  const bool lacks_foreground = options_.foreground > 0 && file_.foreground.empty();
  if (lacks_foreground || (options_.foreground < options_.batch_size && file_.background.empty())) {
    return Error{ErrorCode::kData,
                 fmt::format("window file '{}' has no {} windows, which fg_fraction asks for: look "
                             "at fg_threshold and bg_threshold",
                             file_.path, lacks_foreground ? "foreground" : "background")};
  }
  const auto means = static_cast<std::int64_t>(shape_.mean_values.size());
  const auto mean_values = file_.channels * shape_.mean_height * shape_.mean_width;
  if ((means > 1 && means != file_.channels) ||
      mean_values != static_cast<std::int64_t>(shape_.mean_image.size())) {
    return bad_window_field(
        fmt::format("the mean is not of the images' {} channels", file_.channels));
  }
  if (!options_.cache_images) return {};
  std::uint64_t bytes = 0;
  for (const std::string& image : file_.images) {
    const auto found = find_file(behind_root(options_.root, image), options_.base);
    std::error_code code;
    const auto size = found ? std::filesystem::file_size(*found, code) : 0;
    if (!code) bytes += size;
  }
  return check_memory("cache_images, with the files of '" + file_.path + "',", bytes,
                      process_memory());
}

Result<std::unique_ptr<BatchReader>> WindowBatchReader::create(WindowFile file,
                                                               const WindowShape& shape,
                                                               const Options& options) {
  std::unique_ptr<WindowBatchReader> reader(new WindowBatchReader(std::move(file), shape, options));
  SPEEDO_TRY(reader->check());
  SPEEDO_ASSIGN(Shape windows, Shape::create({options.batch_size, reader->file_.channels,
                                              shape.crop, shape.crop}));
  reader->part_windows_ = records_together(windows.count(1), options.batch_size);
  reader->shapes_ = {std::move(windows), Shape{options.batch_size}};
  return std::unique_ptr<BatchReader>(std::move(reader));
}

std::int64_t WindowBatchReader::scratch_bytes() const {
  constexpr std::int64_t kImagePixels = 500 * 375;  // what photographs of such data sets have
  return part_windows_ * kImagePixels * file_.channels + shapes_[0].count(1);
}

Result<std::shared_ptr<const std::string>> WindowBatchReader::image_file(std::uint32_t image) {
  if (options_.cache_images) {
    const std::lock_guard lock(mutex_);
    if (const auto found = cached_.find(image); found != cached_.end()) return found->second;
  }
  const std::string name = behind_root(options_.root, file_.images[image]);
  SPEEDO_ASSIGN(std::string bytes, read_image_file(name, options_.base));
  auto file = std::make_shared<const std::string>(std::move(bytes));
  if (options_.cache_images) {
    const std::lock_guard lock(mutex_);
    cached_.emplace(image, file);
  }
  return file;
}

// Which window comes next in its place, and how: the same again for the same seed and place.
void WindowBatchReader::draw(Place& place) const {
  const auto& windows = place.is_foreground ? file_.foreground : file_.background;
  const std::uint64_t index = place.random.below(windows.size());
  place.window = &windows[static_cast<std::size_t>(index)];
  place.record = place.is_foreground ? file_.background.size() + index : index;
  place.mirror = shape_.mirror && place.random.below(2) == 1;
}

void WindowBatchReader::read_images(std::span<Place> places) {
  std::vector<ImageRead> images;
  for (Place& place : places) {
    const std::string& name = file_.images[place.window->image];
    images.push_back({behind_root(options_.root, name), &place.image});
  }
  read_images_together(
      images, file_.channels == 1 ? ImageColor::kGray : ImageColor::kColor,
      [&](std::size_t i) { return image_file(places[i].window->image); },
      [&](std::size_t i, Result<void> outcome) { places[i].outcome = std::move(outcome); });
}

// From its image, if that could be read.
Result<void> WindowBatchReader::fill(Place& place, Record& window, std::span<float> target) {
  if (!place.outcome) {
    const Error& error = place.outcome.error();
    return Error{error.code, fmt::format("window file '{}': {}", file_.path, error.message)};
  }
  const ImageWindow& of = *place.window;
  const Sides sides = sides_of(of, shape_, place.image, place.mirror);
  if (!lies_in(sides.across, place.image.width) || !lies_in(sides.down, place.image.height)) {
    return Error{ErrorCode::kData,
                 fmt::format("window file '{}': the window {} {} {} {} does not lie in '{}', which "
                             "is {} wide and {} high",
                             file_.path, of.x1, of.y1, of.x2, of.y2, file_.images[of.image],
                             place.image.width, place.image.height)};
  }
  cut(place.image, sides, window);
  resize_image(window, sides.down.size, sides.across.size);
  put(window, sides, place.mirror, shape_, target);
  return {};
}

Result<void> WindowBatchReader::fill_or_next(Place& place, Record& window,
                                             std::span<float> target) {
  for (std::uint64_t missed = 0;; ++missed) {
    auto filled = fill(place, window, target);
    if (filled || !bad_records_.pass_over(place.record, filled.error(), missed)) return filled;
    draw(place);
    read_images(std::span(&place, 1));
  }
}

Result<void> WindowBatchReader::read(std::uint64_t batch, std::int64_t part, BatchTops& tops) {
  SPEEDO_ASSERT(part >= 0 && part < part_count());
  const auto desk = desks_.take();
  const std::int64_t first = part * part_windows_;
  const std::int64_t end = std::min(first + part_windows_, options_.batch_size);
  std::vector<Place>& places = desk->places;
  places.resize(static_cast<std::size_t>(end - first), Place{.random = Random(0)});
  for (std::int64_t i = first; i < end; ++i) {
    Place& place = places[static_cast<std::size_t>(i - first)];
    place.random = Random::derive(options_.seed, {batch, static_cast<std::uint64_t>(i)});
    place.is_foreground = i >= options_.batch_size - options_.foreground;
    draw(place);
  }
  read_images(places);
  const auto values = static_cast<std::size_t>(shapes_[0].count(1));
  for (std::int64_t i = first; i < end; ++i) {
    Place& place = places[static_cast<std::size_t>(i - first)];
    const auto at = static_cast<std::size_t>(i);
    SPEEDO_TRY(fill_or_next(place, desk->window, tops[0].subspan(at * values, values)));
    tops[1][at] = static_cast<float>(place.window->label);
  }
  return {};
}

}  // namespace speedo
