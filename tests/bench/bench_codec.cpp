// What codecs cost: GB of floats a second that encode() and decode() pass through on one thread,
// chunk by chunk. Beside them memcpy of the same floats, and for encode() with a residual what
// residual += values takes, which reads and writes the same arrays. In turns, the fastest pass of
// each.
//
//   bench_codec [MB of floats, 244 without it] [rounds] [codec...]
//
// The values are noise of a gradient's shape: most small, some large.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/codec/codec.hpp>
#include <speedo/train/merge.hpp>

#include "bench/rates.hpp"

namespace speedo::bench {
namespace {

struct Passes {
  double plain = 0.0, feedback = 0.0, decode = 0.0, copy = 0.0,
         add = 0.0;  // seconds, the least so far
};

struct Arrays {
  std::vector<float> values, residual, decoded;
  std::vector<std::byte> bytes;    // a chunk's begin at kBytesPlace times its first value's index
  std::vector<std::size_t> sizes;  // of each chunk's bytes
  std::size_t chunks() const { return sizes.size(); }
};

constexpr std::size_t kBytesPlace = 5;  // threshold and topk need little more than 4 a value

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "bench_codec: %s\n", message.c_str());
  std::exit(EXIT_FAILURE);
}

Arrays make_arrays(std::size_t count) {
  Arrays arrays;
  Random random(1);
  arrays.values.resize(count);
  for (float& value : arrays.values) {
    const float wide = random.uniform();
    value = 0.01F * wide * wide * wide * random.uniform(-1.0F, 1.0F);
  }
  arrays.residual.resize(count);
  arrays.decoded.resize(count);
  arrays.bytes.resize(kBytesPlace * count);
  arrays.sizes.resize(count / kCodecElementsMax);
  return arrays;
}

template <class T>
std::span<T> chunk_at(std::vector<T>& array, std::size_t chunk, std::size_t each = 1) {
  return std::span(array).subspan(chunk * kCodecElementsMax * each, kCodecElementsMax * each);
}

void encode_all(const CodecSpec& spec, Arrays& arrays, bool feedback) {
  for (std::size_t chunk = 0; chunk < arrays.chunks(); ++chunk) {
    const auto residual = feedback ? chunk_at(arrays.residual, chunk) : std::span<float>();
    const Result<std::size_t> bytes =
        encode(spec, chunk_at(arrays.values, chunk), residual,
               chunk_at(arrays.bytes, chunk, kBytesPlace));
    if (!bytes) fail(bytes.error().message);
    arrays.sizes[chunk] = *bytes;
  }
}

void decode_all(const CodecSpec& spec, Arrays& arrays) {
  for (std::size_t chunk = 0; chunk < arrays.chunks(); ++chunk) {
    const auto bytes = chunk_at(arrays.bytes, chunk, kBytesPlace).first(arrays.sizes[chunk]);
    const Result<void> read = decode(spec, bytes, chunk_at(arrays.decoded, chunk));
    if (!read) fail(read.error().message);
  }
}

void copy_all(Arrays& arrays) {
  for (std::size_t chunk = 0; chunk < arrays.chunks(); ++chunk) {
    const auto values = chunk_at(arrays.values, chunk);
    std::memcpy(chunk_at(arrays.decoded, chunk).data(), values.data(), values.size_bytes());
  }
}

// As fast as memory is: the product's own loop.
void add_all(Arrays& arrays) {
  for (std::size_t chunk = 0; chunk < arrays.chunks(); ++chunk) {
    const auto residual = chunk_at(arrays.residual, chunk);
    if (!merge_accumulate(chunk_at(arrays.values, chunk), residual)) fail("a sum is not finite");
  }
}

void keep_least(double& least, const std::function<void()>& pass) {
  const double seconds = best_seconds(1, 1, [&](int) { pass(); });
  least = least == 0.0 ? seconds : std::min(least, seconds);
}

void print_row(const CodecSpec& spec, const Arrays& arrays, const Passes& least) {
  double sent = 0.0;
  for (const std::size_t size : arrays.sizes) sent += static_cast<double>(size);
  const double bytes = static_cast<double>(arrays.chunks() * kCodecElementsMax * sizeof(float));
  const auto rate = [&](double seconds) { return bytes / seconds / 1e9; };
  std::printf("| %s | %.1f | %.1f (%.2f) | %.1f (%.2f) | %.1f (%.2f) | %.1f | %.1f |\n",
              to_string(spec).c_str(), bytes / sent, rate(least.plain), least.copy / least.plain,
              rate(least.feedback), least.add / least.feedback, rate(least.decode),
              least.copy / least.decode, rate(least.copy), rate(least.add));
  std::fflush(stdout);
}

void run(std::size_t megabytes, int rounds, const std::vector<std::string>& codecs) {
  const std::size_t chunks = std::max<std::size_t>(megabytes * 1000 * 1000 / kChunkBytes, 1);
  Arrays arrays = make_arrays(chunks * kCodecElementsMax);
  std::printf("%zu chunks of %zu floats; GB of floats a second (share of memcpy or +=)\n\n", chunks,
              kCodecElementsMax);
  std::printf("| codec | times fewer bytes | encode | with residual | decode | memcpy | += |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const std::string& text : codecs) {
    const Result<CodecSpec> spec = parse_codec(text);
    if (!spec) fail(spec.error().message);
    Passes least;
    for (int round = 0; round < rounds; ++round) {
      keep_least(least.copy, [&] { copy_all(arrays); });
      keep_least(least.add, [&] { add_all(arrays); });
      std::fill(arrays.residual.begin(), arrays.residual.end(), 0.0F);
      keep_least(least.feedback, [&] { encode_all(*spec, arrays, true); });
      keep_least(least.plain, [&] { encode_all(*spec, arrays, false); });
      keep_least(least.decode, [&] { decode_all(*spec, arrays); });
    }
    print_row(*spec, arrays, least);
  }
}

}  // namespace
}  // namespace speedo::bench

int main(int argc, char** argv) {
  const int megabytes = argc > 1 ? std::atoi(argv[1]) : 244;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  if (megabytes < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: bench_codec [MB of floats] [rounds] [codec...]\n");
    return EXIT_FAILURE;
  }
  std::vector<std::string> codecs(argv + std::min(argc, 3), argv + argc);
  if (codecs.empty()) {
    codecs = {"none", "bf16", "fp16", "int8", "onebit", "threshold:0.005", "threshold:0.001",
              "topk:0.1", "topk:1", "topk:10"};
  }
  speedo::bench::run(static_cast<std::size_t>(megabytes), rounds, codecs);
  return EXIT_SUCCESS;
}
