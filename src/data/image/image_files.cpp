// idx (big-endian):  magic:u32 count:u32 [rows:u32 columns:u32] bytes
//   magic = 0, 0, type 8 (unsigned byte), number of dims: 3 for images, 1 for labels
// CIFAR-10 binary:   (label:u8 red:u8[1024] green:u8[1024] blue:u8[1024])*

#include "data/image/image_files.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "data/claimed_size.hpp"
#include "data/random_file.hpp"

namespace speedo {

namespace {

constexpr std::uint32_t kImagesMagic = 0x803, kLabelsMagic = 0x801;
constexpr std::uint64_t kImagesHeaderBytes = 16, kLabelsHeaderBytes = 8;
constexpr std::int64_t kCifarSide = 32, kCifarChannels = 3;
constexpr std::uint64_t kCifarRecordBytes = 1 + kCifarChannels * kCifarSide * kCifarSide;
constexpr unsigned kCifarLabels = 10;

Error bad_file(const RandomFile& file, const std::string& what) {
  return Error{ErrorCode::kData, fmt::format("'{}' {}", file.name(), what)};
}

class IdxSource : public DataSource {
 public:
  IdxSource(RandomFile images, std::vector<std::byte> labels, std::int64_t rows,
            std::int64_t columns)
      : images_(std::move(images)), labels_(std::move(labels)), rows_(rows), columns_(columns) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  bool has_one_size() const override { return true; }

  Result<void> read(std::int64_t index, Record& record) override {
    SPEEDO_ASSERT(index >= 0 && index < size());
    const auto position = static_cast<std::size_t>(index);
    record.channels = 1;
    record.height = rows_;
    record.width = columns_;
    record.label = std::to_integer<std::int64_t>(labels_[position]);
    record.floats.clear();
    record.bytes.resize(static_cast<std::size_t>(rows_ * columns_));
    return images_.read(kImagesHeaderBytes + position * record.bytes.size(),
                        std::as_writable_bytes(std::span(record.bytes)));
  }

 private:
  RandomFile images_;
  std::vector<std::byte> labels_;
  std::int64_t rows_, columns_;
};

class CifarSource : public DataSource {
 public:
  struct Part {
    RandomFile file;
    std::int64_t first;  // index of its first record
  };
  CifarSource(std::vector<Part> parts, std::int64_t size) : parts_(std::move(parts)), size_(size) {}

  std::int64_t size() const override { return size_; }
  bool has_one_size() const override { return true; }

  Result<void> read(std::int64_t index, Record& record) override {
    SPEEDO_ASSERT(index >= 0 && index < size_);
    std::size_t part = parts_.size() - 1;
    while (parts_[part].first > index) --part;
    const RandomFile& file = parts_[part].file;
    const std::uint64_t offset =
        static_cast<std::uint64_t>(index - parts_[part].first) * kCifarRecordBytes;
    std::array<std::uint8_t, 1> label;
    SPEEDO_TRY(file.read(offset, std::as_writable_bytes(std::span(label))));
    if (label[0] >= kCifarLabels) {
      return bad_file(file,
                      fmt::format("has label {} in the record at byte {}; CIFAR-10 has labels "
                                  "0 to 9",
                                  label[0], offset));
    }
    record.channels = kCifarChannels;
    record.height = record.width = kCifarSide;
    record.label = label[0];
    record.floats.clear();
    record.bytes.resize(kCifarRecordBytes - 1);
    return file.read(offset + 1, std::as_writable_bytes(std::span(record.bytes)));
  }

 private:
  std::vector<Part> parts_;
  std::int64_t size_;
};

// Checks an idx header: magic, then `count` and the size that follows from it.
Result<void> check_idx(const RandomFile& file, std::uint32_t magic, std::uint64_t header_bytes,
                       std::span<std::byte> header) {
  if (!file.holds(0, header_bytes)) {
    return bad_file(file, fmt::format("has {} bytes, too few for an idx header", file.bytes()));
  }
  SPEEDO_TRY(file.read(0, header));
  if (big32(header.data()) != magic) {
    return bad_file(file,
                    fmt::format("begins with {:#010x}, but an idx file of this kind begins with "
                                "{:#010x}",
                                big32(header.data()), magic));
  }
  return {};
}

bool replace_once(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.rfind(from);
  if (at == std::string::npos) return false;
  text.replace(at, from.size(), to);
  return true;
}

Result<std::vector<std::byte>> read_labels(const std::filesystem::path& path, std::uint64_t count) {
  SPEEDO_ASSIGN(const RandomFile file, RandomFile::open_unpacked(path, kLabelsHeaderBytes + count));
  std::array<std::byte, kLabelsHeaderBytes> header;
  SPEEDO_TRY(check_idx(file, kLabelsMagic, kLabelsHeaderBytes, header));
  if (big32(header.data() + 4) != count) {
    return bad_file(file, fmt::format("announces {} labels, but there are {} images",
                                      big32(header.data() + 4), count));
  }
  if (file.bytes() != kLabelsHeaderBytes + count) {
    return bad_file(file, fmt::format("announces {} labels, which need {} bytes, but has {}", count,
                                      kLabelsHeaderBytes + count, file.bytes()));
  }
  std::vector<std::byte> labels(count);
  SPEEDO_TRY(file.read(kLabelsHeaderBytes, labels));
  return labels;
}

}  // namespace

std::filesystem::path idx_labels_beside(const std::filesystem::path& images) {
  std::string name = images.filename().string();
  replace_once(name, "images", "labels");
  replace_once(name, "idx3", "idx1");
  return images.parent_path() / name;
}

// Of a whole idx file, as its header says; a file without a header gets no further than that.
std::uint64_t announced_bytes(const std::filesystem::path& images) {
  std::array<std::byte, kImagesHeaderBytes> header{};
  peek_unpacked(images, header);
  const std::uint64_t pixels =
      std::uint64_t{big32(header.data() + 8)} * std::uint64_t{big32(header.data() + 12)};
  const std::uint64_t bytes = saturating_product(pixels, big32(header.data() + 4));
  return std::min(bytes, UINT64_MAX - kImagesHeaderBytes) + kImagesHeaderBytes;
}

Result<std::unique_ptr<DataSource>> open_idx(const std::filesystem::path& images,
                                             const std::filesystem::path& labels) {
  SPEEDO_ASSIGN(RandomFile file, RandomFile::open_unpacked(images, announced_bytes(images)));
  std::array<std::byte, kImagesHeaderBytes> header;
  SPEEDO_TRY(check_idx(file, kImagesMagic, kImagesHeaderBytes, header));
  const std::uint64_t count = big32(header.data() + 4), rows = big32(header.data() + 8),
                      columns = big32(header.data() + 12);
  if (count == 0) return bad_file(file, "holds no images");
  if (rows == 0 || columns == 0 || rows > static_cast<std::uint64_t>(kBlobElementsMax) / columns) {
    return bad_file(file, fmt::format("announces impossible images of {}x{}", rows, columns));
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, rows * columns, &bytes) ||
      file.bytes() != kImagesHeaderBytes + bytes) {
    return bad_file(
        file, fmt::format("announces {} images of {}x{}, which need {} bytes, but has {}", count,
                          rows, columns, kImagesHeaderBytes + bytes, file.bytes()));
  }
  SPEEDO_ASSIGN(std::vector<std::byte> label_bytes, read_labels(labels, count));
  return std::unique_ptr<DataSource>(std::make_unique<IdxSource>(
      std::move(file), std::move(label_bytes), static_cast<std::int64_t>(rows),
      static_cast<std::int64_t>(columns)));
}

Result<std::unique_ptr<DataSource>> open_cifar(const std::vector<std::filesystem::path>& files) {
  std::vector<CifarSource::Part> parts;
  std::int64_t size = 0;
  for (const std::filesystem::path& path : files) {
    SPEEDO_ASSIGN(RandomFile file, RandomFile::open(path));
    if (file.bytes() == 0 || file.bytes() % kCifarRecordBytes != 0) {
      return bad_file(file,
                      fmt::format("has {} bytes, not a whole number of CIFAR-10 records of {} "
                                  "bytes",
                                  file.bytes(), kCifarRecordBytes));
    }
    const auto records = static_cast<std::int64_t>(file.bytes() / kCifarRecordBytes);
    parts.push_back({std::move(file), size});
    size += records;
  }
  if (parts.empty()) return Error{ErrorCode::kData, "no CIFAR file was named"};
  return std::unique_ptr<DataSource>(std::make_unique<CifarSource>(std::move(parts), size));
}

bool looks_like_idx_images(const std::filesystem::path& path) {
  std::array<std::byte, 4> magic;
  return peek_unpacked(path, magic) && big32(magic.data()) == kImagesMagic;
}

bool looks_like_cifar(const std::filesystem::path& path) {
  const auto file = RandomFile::open(path);
  return file && path.extension() == ".bin" && file->bytes() > 0 &&
         file->bytes() % kCifarRecordBytes == 0;
}

}  // namespace speedo
