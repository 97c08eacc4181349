// Which texts name a codec, and what is said of others.

#include "codec/codec_support.hpp"

namespace speedo {
namespace {

TEST_CASE("Each codec is read by its name, with a default where a parameter is left out") {
  CHECK(test::codec_of("none").kind == CodecKind::kNone);
  CHECK(test::codec_of("bf16").kind == CodecKind::kBf16);
  CHECK(test::codec_of("fp16").kind == CodecKind::kFp16);
  CHECK(test::codec_of("int8").kind == CodecKind::kInt8);
  CHECK(test::codec_of("onebit").kind == CodecKind::kOneBit);
  CHECK(test::codec_of("threshold") == CodecSpec{CodecKind::kThreshold, 0.0F, 10.0});
  CHECK(test::codec_of("threshold:2.5e-4") == CodecSpec{CodecKind::kThreshold, 2.5e-4F, 10.0});
  CHECK(test::codec_of("topk") == CodecSpec{CodecKind::kTopK, 0.0F, 10.0});
  CHECK(test::codec_of("topk:0.1") == CodecSpec{CodecKind::kTopK, 0.0F, 0.1});
  CHECK(test::codec_of("topk:100") == CodecSpec{CodecKind::kTopK, 0.0F, 100.0});
}

TEST_CASE("A codec's text is read as that codec") {
  for (const char* text : {"none", "bf16", "fp16", "int8", "onebit", "threshold:0.001",
                           "threshold:5", "topk:1", "topk:0.1", "topk:33.3"}) {
    CHECK(to_string(test::codec_of(text)) == text);
  }
  CHECK(to_string(test::codec_of("threshold")) == "threshold");
  CHECK(to_string(test::codec_of("topk")) == "topk:10");
  for (const std::string& text : test::kCodecTexts) {
    const CodecSpec spec = test::codec_of(text);
    CHECK(test::codec_of(to_string(spec)) == spec);
  }
}

std::string refusal(const std::string& text) {
  const Result<CodecSpec> spec = parse_codec(text);
  CAPTURE(text);
  REQUIRE_FALSE(spec);
  CHECK(spec.error().code == ErrorCode::kUsage);
  CHECK(spec.error().message.starts_with("codec '" + text + "': "));
  CHECK(spec.error().message.find('\n') == std::string::npos);
  return spec.error().message;
}

TEST_CASE("What is no codec is refused with what is allowed") {
  for (const char* text : {"", "zip", "BF16", " none", "none ", "float16", ":", ":1"}) {
    CHECK(refusal(text).ends_with(
        "allowed are none, bf16, fp16, int8, threshold:T (T above 0; without it the largest fifth "
        "of the values is sent), topk:P (P percent of the values, 10 without it), onebit"));
  }
}

TEST_CASE("A parameter that the codec does not take is refused") {
  for (const char* text : {"threshold:", "threshold:0", "threshold:-1", "threshold:nan",
                           "threshold:inf", "threshold:1e99", "threshold:1e-99", "threshold:1x",
                           "threshold: 1", "threshold:0x1", "threshold:1:2"}) {
    CHECK(refusal(text).ends_with("a number above 0, what is sent of each value"));
  }
  for (const char* text : {"topk:", "topk:0", "topk:-1", "topk:100.5", "topk:nan", "topk:inf",
                           "topk:1%", "topk:1/2"}) {
    CHECK(refusal(text).ends_with("above 0 and at most 100"));
  }
  for (const char* text : {"none:", "bf16:1", "fp16:16", "int8:256", "onebit:512"}) {
    CHECK(refusal(text).ends_with("only threshold:T and topk:P take something after ':'"));
  }
}

}  // namespace
}  // namespace speedo
