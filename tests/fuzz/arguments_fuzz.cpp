// Texts of command lines and of what workers are told: addresses, URIs, codecs, ranges.
#include <speedo/base/assert.hpp>
#include <speedo/codec/codec.hpp>
#include <speedo/store/redis_store.hpp>
#include <speedo/store/store_address.hpp>

#include "actors/node.hpp"
#include "cli/worker_range.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"

namespace speedo::fuzz {
namespace {

void read_redis(const std::string& text) {
  split_address(text);
  // What may be shown is a fixed point, and one that has nothing left to hide.
  const std::string shown = redacted(text);
  SPEEDO_ASSERT(redacted(shown) == shown);
  SPEEDO_ASSERT(StoreAddress(text).text().size() <= text.size());
  static_cast<void>(parse_redis_user_info(text));
  static_cast<void>(parse_redis_uri(text));
  const auto address = parse_redis_address(text);
  if (address) SPEEDO_ASSERT(parse_redis_address(to_string(*address)));
  const auto several = parse_redis_addresses(text);
  if (several) SPEEDO_ASSERT(parse_redis_addresses(to_string(*several)));
}

SPEEDO_FUZZ_TARGET(arguments)(Bytes bytes) {
  Input input(bytes);
  const unsigned which = input.byte() % 4U;
  const std::string text = input.text();
  if (which == 0) read_redis(text);
  if (which == 1) static_cast<void>(parse_address(text));
  if (which == 2) {
    const auto spec = parse_codec(text);
    if (spec) SPEEDO_ASSERT(is_codec_sound(*spec) && *parse_codec(to_string(*spec)) == *spec);
  }
  if (which == 3) static_cast<void>(parse_workers(text));
}

}  // namespace
}  // namespace speedo::fuzz
