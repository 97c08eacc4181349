#include "formats/safetensors_file.hpp"

#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/bfloat16.hpp>
#include <speedo/base/file.hpp>

#include "core/blob_proto.hpp"
#include "data/claimed_size.hpp"
#include "formats/weight_names.hpp"

namespace speedo {

namespace {

static_assert(std::endian::native == std::endian::little, "values lie in files as in memory");

constexpr std::uint64_t kLengthBytes = 8;
// The limit of the library itself: a header of more is no header.
constexpr std::uint64_t kHeaderBytesMax = 100'000'000;
// Where the data begins, so that its values lie on addresses that suit them.
constexpr std::uint64_t kAlignmentBytes = 8;

Error bad_file(const std::string& file, const std::string& what) {
  return {ErrorCode::kData, fmt::format("{}: {}", file, what)};
}

// IEEE binary16: a sign, 5 bits of exponent, 10 of mantissa.
float from_float16(std::uint16_t bits) {
  const int exponent = (bits >> 10U) & 0x1f;
  const int mantissa = bits & 0x3ff;
  float value = 0.0F;
  if (exponent == 0x1f) {
    value = mantissa == 0 ? HUGE_VALF : std::nanf("");
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
  }
  return (bits & 0x8000U) != 0 ? -value : value;
}

template <class Stored, class Convert>
void convert(const std::vector<std::byte>& bytes, std::span<float> target, Convert to_float) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    target[i] = to_float(value);
  }
}

void convert(SafetensorsType type, const std::vector<std::byte>& bytes, std::span<float> target) {
  switch (type) {
    case SafetensorsType::kF32:
      return convert<float>(bytes, target, [](float value) { return value; });
    case SafetensorsType::kF64:
      return convert<double>(bytes, target, [](double value) { return static_cast<float>(value); });
    case SafetensorsType::kF16:
      return convert<std::uint16_t>(bytes, target, from_float16);
    case SafetensorsType::kBf16:
      return convert<std::uint16_t>(bytes, target, from_bfloat16);
    case SafetensorsType::kOther:
      break;
  }
}

// A blob of a model, and what it becomes.
struct NamedBlob {
  const caffe::BlobProto* blob;
  StoredTensor tensor;
};

// A blob without shape and values stands for one that another layer has, in what HDF5 files give.
bool is_absent(const caffe::BlobProto& blob) { return blob.ByteSizeLong() == 0; }

Result<std::vector<NamedBlob>> named_blobs(const caffe::NetParameter& model) {
  std::vector<NamedBlob> blobs;
  std::set<std::string> names;
  std::uint64_t end = 0;
  for (const caffe::LayerParameter& layer : model.layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      if (is_absent(layer.blobs(i))) continue;
      StoredTensor tensor;
      tensor.name = weight_name(layer, i, layer.blobs_size());
      if (!names.insert(tensor.name).second) {
        return Error{ErrorCode::kData,
                     fmt::format("two of the model's parameters would be called '{}': give its "
                                 "layers names of their own",
                                 tensor.name)};
      }
      SPEEDO_ASSIGN(tensor.shape, filled_shape_of(layer.blobs(i)));
      tensor.begin = end;
      end += static_cast<std::uint64_t>(tensor.shape.count()) * sizeof(float);
      tensor.end = end;
      blobs.push_back({&layer.blobs(i), std::move(tensor)});
    }
  }
  return blobs;
}

std::string little_endian(std::uint64_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

}  // namespace

SafetensorsFile::SafetensorsFile(RandomFile file, SafetensorsHeader header,
                                 std::uint64_t data_offset)
    : file_(std::move(file)), header_(std::move(header)), data_offset_(data_offset) {}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(RandomFile file, RandomFile::open(path));
  std::array<std::byte, kLengthBytes> length;
  if (!file.holds(0, kLengthBytes)) {
    return bad_file(file.name(), "is no safetensors file: it has not even the header's length");
  }
  SPEEDO_TRY(file.read(0, length));
  const std::uint64_t header_bytes = little64(length.data());
  if (header_bytes > kHeaderBytesMax || !file.holds(kLengthBytes, header_bytes)) {
    return bad_file(file.name(), fmt::format("is no safetensors file, or cut short: it announces "
                                             "a header of {} bytes and has {}",
                                             header_bytes, file.bytes()));
  }
  std::string json(header_bytes, '\0');
  SPEEDO_TRY(file.read(kLengthBytes, std::as_writable_bytes(std::span(json))));
  const std::uint64_t data_offset = kLengthBytes + header_bytes;
  auto header = parse_safetensors_header(json, file.bytes() - data_offset);
  if (!header) return bad_file(file.name(), header.error().message);
  return SafetensorsFile(std::move(file), std::move(*header), data_offset);
}

Result<void> SafetensorsFile::read(const StoredTensor& tensor, std::span<float> target) const {
  SPEEDO_ASSERT(target.size() == static_cast<std::size_t>(tensor.shape.count()));
  if (tensor.type == SafetensorsType::kOther) {
    return bad_file(name(), fmt::format("tensor '{}' is not of F32, F16, BF16 or F64, and cannot "
                                        "be read",
                                        tensor.name));
  }
  SPEEDO_TRY(
      check_memory(fmt::format("{}: tensor '{}'", name(), tensor.name), tensor.end - tensor.begin));
  std::vector<std::byte> bytes(tensor.end - tensor.begin);
  SPEEDO_TRY(file_.read(data_offset_ + tensor.begin, bytes));
  convert(tensor.type, bytes, target);
  return {};
}

Result<void> write_safetensors(const std::filesystem::path& path, const caffe::NetParameter& model,
                               const std::map<std::string, std::string>& metadata) {
  SPEEDO_ASSIGN(const std::vector<NamedBlob> blobs, named_blobs(model));
  SafetensorsHeader header{.metadata = metadata, .tensors = {}};
  for (const NamedBlob& each : blobs) header.tensors.push_back(each.tensor);
  std::string json = to_json(header);
  json.resize((json.size() + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes, ' ');
  std::string bytes = little_endian(json.size()) + json;
  const std::size_t data_offset = bytes.size();
  bytes.resize(data_offset + (blobs.empty() ? 0 : blobs.back().tensor.end));
  for (const NamedBlob& each : blobs) {
    std::vector<float> values(static_cast<std::size_t>(each.tensor.shape.count()));
    SPEEDO_TRY(read_values(*each.blob, values));
    std::memcpy(bytes.data() + data_offset + each.tensor.begin, values.data(),
                values.size() * sizeof(float));
  }
  return write_file_atomically(path, bytes);
}

}  // namespace speedo
