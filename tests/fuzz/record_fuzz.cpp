// Records as they lie in the store: heads of chunks, manifests, blobs.
#include <speedo/base/assert.hpp>

#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "store/record_codec.hpp"

namespace speedo::fuzz {
namespace {

void read_manifest(const std::string& bytes) {
  const auto manifest = decode_manifest(bytes);
  if (!manifest) return;
  const auto again = decode_manifest(encode_manifest(*manifest));
  SPEEDO_ASSERT(again && again->chunks == manifest->chunks);
  SPEEDO_ASSERT(again->info.state == manifest->info.state);
  for (std::size_t chunk = 0; chunk < manifest->chunks.size(); ++chunk) {
    SPEEDO_ASSERT(manifest->slot_of(chunk) == again->slot_of(chunk));
  }
}

SPEEDO_FUZZ_TARGET(record)(Bytes bytes) {
  const std::string text = text_of(bytes);
  if (const auto head = decode_chunk_head(text)) {
    const auto again = decode_chunk_head(encode_chunk_head(*head));
    SPEEDO_ASSERT(again && again->checksum == head->checksum && again->codec == head->codec);
  }
  for (const std::string& each : {text, with_checksum(text, 8)}) {
    read_manifest(each);
    if (const auto value = decode_blob(each)) {
      SPEEDO_ASSERT(encode_blob_head(*value) + std::string(*value) == each);
    }
  }
}

}  // namespace
}  // namespace speedo::fuzz
