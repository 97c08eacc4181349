#include "formats/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <speedo/base/assert.hpp>

#include "base/json_member.hpp"
#include "base/json_text.hpp"

namespace speedo {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  SafetensorsType type;
  std::string_view name;
  std::uint64_t bytes;
};

constexpr auto kTypes = std::to_array<TypeName>({{SafetensorsType::kF64, "F64", 8},
                                                 {SafetensorsType::kF32, "F32", 4},
                                                 {SafetensorsType::kF16, "F16", 2},
                                                 {SafetensorsType::kBf16, "BF16", 2},
                                                 {SafetensorsType::kOther, "BOOL", 1},
                                                 {SafetensorsType::kOther, "U8", 1},
                                                 {SafetensorsType::kOther, "I8", 1},
                                                 {SafetensorsType::kOther, "F8_E5M2", 1},
                                                 {SafetensorsType::kOther, "F8_E4M3", 1},
                                                 {SafetensorsType::kOther, "U16", 2},
                                                 {SafetensorsType::kOther, "I16", 2},
                                                 {SafetensorsType::kOther, "U32", 4},
                                                 {SafetensorsType::kOther, "I32", 4},
                                                 {SafetensorsType::kOther, "U64", 8},
                                                 {SafetensorsType::kOther, "I64", 8}});

const TypeName& entry_of(SafetensorsType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [type](const TypeName& entry) { return entry.type == type; });
}

// Takes the JSON as it is read, without a tree of it: a header says one thing on each level, so
// what is nested deeper, or is of another kind, ends the reading at once.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  const std::string& error() const { return error_; }
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { return fail("null has no meaning here"); }
  bool boolean(bool /*value*/) override { return fail("true and false have no meaning here"); }
  bool number_integer(number_integer_t value) override {
    return fail(fmt::format("{} is negative", value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) return fail(fmt::format("{} has no meaning here", value));
    if (numbers_->size() >= kNumbersMax) return fail(fmt::format("{} has too many numbers", key_));
    numbers_->push_back(value);
    return true;
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return fail(fmt::format("{} is no whole number", text));
  }
  bool binary(binary_t& /*value*/) override { return fail("binary values have no meaning here"); }

  bool string(string_t& value) override {
    if (in_array_ || depth_ != 2) return fail("a text has no meaning here");
    if (name_ == kMetadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (key_ != "dtype") return fail(fmt::format("{} is no list", key_));
    type_ = std::move(value);
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    if (in_array_ || depth_ == 2) return fail("an object has no meaning here");
    ++depth_;
    if (depth_ == 2) {
      type_.reset();
      shape_.reset();
      offsets_.reset();
      keys_.clear();
    }
    return true;
  }

  bool key(string_t& text) override {
    if (depth_ == 1) {
      if (!is_sound_name(text)) {
        name_ = fmt::format("number {}", names_.size() + 1);
        return fail(fmt::format("its name has control characters, or more than {} bytes",
                                kNameBytesMax));
      }
      name_ = std::move(text);
      if (!names_.insert(name_).second) return fail("is there twice");
      return true;
    }
    key_ = std::move(text);
    if (!keys_.insert(key_).second) return fail(fmt::format("{} is there twice", key_));
    if (name_ == kMetadata || key_ == "dtype" || key_ == "shape" || key_ == "data_offsets") {
      return true;
    }
    return fail(fmt::format("{} is not known", key_));
  }

  bool end_object() override {
    --depth_;
    if (depth_ == 0 || name_ == kMetadata) return true;
    return add_tensor();
  }

  bool start_array(std::size_t /*size*/) override {
    const bool is_list = depth_ == 2 && name_ != kMetadata && key_ != "dtype" && !in_array_;
    if (!is_list) return fail("a list has no meaning here");
    in_array_ = true;
    numbers_ = key_ == "shape" ? &shape_.emplace() : &offsets_.emplace();
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*what*/) override {
    error_ = fmt::format("byte {} of the header is no JSON", position);
    return false;
  }

 private:
  using Numbers = std::vector<std::uint64_t>;
  static constexpr std::size_t kNumbersMax = 64;
  static constexpr std::size_t kNameBytesMax = 4096;

  // Names go into messages.
  static bool is_sound_name(const std::string& name) {
    const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    return name.size() <= kNameBytesMax && std::none_of(name.begin(), name.end(), is_control);
  }

  bool fail(const std::string& what) {
    error_ =
        depth_ == 0 ? "the header is no JSON object" : fmt::format("tensor '{}': {}", name_, what);
    return false;
  }

  bool add_tensor() {
    if (!type_ || !shape_ || !offsets_ || offsets_->size() != 2) {
      return fail("needs dtype, shape and two data_offsets");
    }
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const TypeName& entry) { return entry.name == *type_; });
    if (type == kTypes.end()) return fail(fmt::format("dtype {} is not known", *type_));
    auto shape = Shape::create({shape_->begin(), shape_->end()});
    if (!shape) return fail(shape.error().message);
    const std::uint64_t begin = (*offsets_)[0], end = (*offsets_)[1];
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape->count()) * type->bytes;
    if (end < begin || end - begin != bytes) {
      return fail(fmt::format("its shape {} of {} takes {} bytes, its data_offsets are {} and {}",
                              to_string(*shape), type->name, bytes, begin, end));
    }
    header_.tensors.push_back({name_, type->type, std::move(*shape), begin, end});
    return true;
  }

  SafetensorsHeader header_;
  std::string error_, name_, key_;
  std::set<std::string> names_, keys_;
  int depth_ = 0;
  bool in_array_ = false;
  Numbers* numbers_ = nullptr;
  std::optional<std::string> type_;
  std::optional<Numbers> shape_, offsets_;
};

Error bad_header(std::string what) { return {ErrorCode::kData, std::move(what)}; }

// Arrays in the order of their data, with nothing between them and nothing left.
Result<void> check_data(SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  std::uint64_t end = 0;
  for (const StoredTensor& tensor : header.tensors) {
    if (tensor.end > data_bytes) {
      return bad_header(fmt::format("tensor '{}': its data ends at byte {}, the file has {}",
                                    tensor.name, tensor.end, data_bytes));
    }
    if (tensor.begin != end) {
      return bad_header(
          fmt::format("tensor '{}': its data begins at byte {}, that before it ends "
                      "at {}",
                      tensor.name, tensor.begin, end));
    }
    end = tensor.end;
  }
  if (end == data_bytes) return {};
  return bad_header(fmt::format("{} bytes of data are no tensor's", data_bytes - end));
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                   std::uint64_t data_bytes) {
  HeaderReader reader;
  if (!Json::sax_parse(json, &reader)) return bad_header(reader.error());
  SafetensorsHeader header = reader.take();
  SPEEDO_TRY(check_data(header, data_bytes));
  return header;
}

std::string to_json(const SafetensorsHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[std::string(kMetadata)] = header.metadata;
  for (const StoredTensor& tensor : header.tensors) {
    SPEEDO_ASSERT(tensor.type != SafetensorsType::kOther);
    add_member(json, tensor.name,
               Json{{"dtype", entry_of(tensor.type).name},
                    {"shape", tensor.shape.dims()},
                    {"data_offsets", {tensor.begin, tensor.end}}});
  }
  // A name that is no UTF-8 would be no JSON.
  return json_text(json);
}

}  // namespace speedo
