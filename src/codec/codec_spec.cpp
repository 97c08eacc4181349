#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <speedo/base/assert.hpp>
#include <speedo/codec/codec.hpp>

#include "base/parse_number.hpp"

namespace speedo {
namespace {

struct CodecName {
  std::string_view name;
  CodecKind kind;
};

constexpr std::array kCodecNames = {
    CodecName{"none", CodecKind::kNone},           CodecName{"bf16", CodecKind::kBf16},
    CodecName{"fp16", CodecKind::kFp16},           CodecName{"int8", CodecKind::kInt8},
    CodecName{"threshold", CodecKind::kThreshold}, CodecName{"topk", CodecKind::kTopK},
    CodecName{"onebit", CodecKind::kOneBit},
};

Error bad_codec(std::string_view text, const std::string& reason) {
  return usage_error("codec '" + std::string(text) + "': " + reason);
}

// "0.001", not "1e-03": the shortest decimal that is read as the same number.
template <class Number>
std::string number_text(Number value) {
  std::array<char, 32> text;
  const auto [end, code] = std::to_chars(text.data(), text.data() + text.size(), value);
  SPEEDO_ASSERT(code == std::errc());
  return {text.data(), end};
}

Result<CodecSpec> read_parameter(std::string_view text, CodecSpec spec, std::string_view number) {
  if (spec.kind == CodecKind::kThreshold) {
    const std::optional<float> threshold = parse_number<float>(number);
    if (!threshold || !std::isfinite(*threshold) || *threshold <= 0.0F) {
      return bad_codec(text, "T of threshold:T is a number above 0, what is sent of each value");
    }
    spec.threshold = *threshold;
    return spec;
  }
  if (spec.kind == CodecKind::kTopK) {
    const std::optional<double> percent = parse_number<double>(number);
    if (!percent || !(*percent > 0.0 && *percent <= 100.0)) {
      return bad_codec(text, "P of topk:P is the percentage of the values that is sent, "
                             "above 0 and at most 100");
    }
    spec.percent = *percent;
    return spec;
  }
  return bad_codec(text, "only threshold:T and topk:P take something after ':'");
}

}  // namespace

Result<CodecSpec> parse_codec(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const CodecName& known : kCodecNames) {
    if (known.name != name) continue;
    CodecSpec spec;
    spec.kind = known.kind;
    if (colon == std::string_view::npos) return spec;
    return read_parameter(text, spec, text.substr(colon + 1));
  }
  const CodecSpec defaults;
  return bad_codec(text, "allowed are none, bf16, fp16, int8, threshold:T (T above 0; without it "
                         "the largest fifth of the values is sent), topk:P (P percent of the "
                         "values, " +
                             number_text(defaults.percent) + " without it), onebit");
}

std::string to_string(const CodecSpec& spec) {
  for (const CodecName& known : kCodecNames) {
    if (known.kind != spec.kind) continue;
    std::string text(known.name);
    const bool has_threshold = spec.kind == CodecKind::kThreshold && spec.threshold > 0.0F;
    if (has_threshold) text += ":" + number_text(spec.threshold);
    if (spec.kind == CodecKind::kTopK) text += ":" + number_text(spec.percent);
    return text;
  }
  SPEEDO_ASSERT(false);
  return "";
}

}  // namespace speedo
