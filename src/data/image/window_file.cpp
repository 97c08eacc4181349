// file  := image*        words with blanks or newlines between them
// image := "#" number path channels height width window_count window*
// window:= class overlap x1 y1 x2 y2

#include "data/image/window_file.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/file.hpp>

#include "base/byte_order_mark.hpp"
#include "base/parse_number.hpp"
#include "caffe.pb.h"

namespace speedo {

namespace {

constexpr std::size_t kWindowTextBytesMax = std::size_t{2} << 30U;

class WindowText {
 public:
  WindowText(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  // The next word; empty at the end.
  std::string_view word() {
    const auto is_blank = [this](std::size_t at) {
      return std::isspace(static_cast<unsigned char>(text_[at])) != 0;
    };
    while (at_ < text_.size() && is_blank(at_)) ++at_;
    word_at_ = at_;
    while (at_ < text_.size() && !is_blank(at_)) ++at_;
    return std::string_view(text_).substr(word_at_, at_ - word_at_);
  }

  template <class Number>
  Result<Number> number(const char* what) {
    const std::string_view found = word();
    const auto value = parse_number<Number>(found);
    if (value) return *value;
    return error(fmt::format("has '{}' where {} belongs", found.substr(0, 40), what));
  }

  // Of the line of the word that was read last.
  Error error(const std::string& what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(word_at_), '\n');
    return {ErrorCode::kData, fmt::format("window file '{}' line {} {}", path_, line, what)};
  }

 private:
  std::string path_, text_;
  std::size_t at_ = 0, word_at_ = 0;
};

Result<void> read_window(WindowText& text, const caffe::WindowDataParameter& parameter,
                         WindowFile& file) {
  ImageWindow window;
  window.image = static_cast<std::uint32_t>(file.images.size() - 1);
  SPEEDO_ASSIGN(window.label, text.number<std::int32_t>("a class"));
  SPEEDO_ASSIGN(const float overlap, text.number<float>("an overlap"));
  for (std::int32_t* corner : {&window.x1, &window.y1, &window.x2, &window.y2}) {
    SPEEDO_ASSIGN(*corner, text.number<std::int32_t>("a corner of a window"));
  }
  if (overlap >= parameter.fg_threshold()) {
    if (window.label < 1) return text.error("has a foreground window without a class");
    file.foreground.push_back(window);
  } else if (overlap < parameter.bg_threshold()) {
    window.label = 0;
    file.background.push_back(window);
  }
  return {};
}

Result<void> read_image(WindowText& text, const caffe::WindowDataParameter& parameter,
                        WindowFile& file) {
  SPEEDO_ASSIGN([[maybe_unused]] const std::int64_t number,
                text.number<std::int64_t>("the number of an image"));
  file.images.emplace_back(text.word());
  if (file.images.back().empty()) return text.error("ends where the path of an image belongs");
  SPEEDO_ASSIGN(const std::int64_t channels, text.number<std::int64_t>("a number of channels"));
  for (const char* what : {"a height", "a width"}) {
    SPEEDO_ASSIGN([[maybe_unused]] const std::int64_t size, text.number<std::int64_t>(what));
  }
  if (channels != 1 && channels != 3) return text.error("has an image without 1 or 3 channels");
  if (file.images.size() > 1 && channels != file.channels) {
    return text.error("has an image of other channels than those before");
  }
  file.channels = channels;
  SPEEDO_ASSIGN(const std::int64_t count, text.number<std::int64_t>("a number of windows"));
  for (std::int64_t i = 0; i < count; ++i) SPEEDO_TRY(read_window(text, parameter, file));
  return {};
}

}  // namespace

Result<WindowFile> WindowFile::read(const std::filesystem::path& path,
                                    const caffe::WindowDataParameter& parameter) {
  SPEEDO_ASSIGN(const std::string content, read_file(path, kWindowTextBytesMax));
  WindowText text(path.string(), std::string(without_byte_order_mark(content)));
  WindowFile file;
  file.path = path.string();
  for (std::string_view mark = text.word(); !mark.empty(); mark = text.word()) {
    if (mark != "#") return text.error("has no '#', with which images begin");
    SPEEDO_TRY(read_image(text, parameter, file));
  }
  if (!file.images.empty()) return file;
  return Error{ErrorCode::kData, fmt::format("window file '{}' has no images", file.path)};
}

}  // namespace speedo
