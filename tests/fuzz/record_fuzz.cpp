// Records as they lie in the store: heads of chunks, manifests, blobs.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <speedo/base/assert.hpp>

#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "store/mastership.hpp"
#include "store/memory_key_value.hpp"
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

// The term and the lease of a job's master, and a record's writer, as they lie in a store.
void claim_mastership(const std::string& text) {
  Input input(std::as_bytes(std::span(text)));
  const std::string term = text_of(input.take(input.byte() % 32U)), lease = input.text();
  KvMaster writer;
  writer.term = 7;
  judge_write(writer, {.term = term, .writer = {}, .lease = lease});
  writer.writer_key = "record";
  judge_write(writer, {.term = {}, .writer = lease, .lease = {}});
  MemoryKeyValue map;
  MemoryImage image;
  image[term_key("job")].bytes = std::make_shared<const std::string>(term);
  if (!lease.empty()) image[lease_key("job")].bytes = std::make_shared<const std::string>(lease);
  map.set_image(std::move(image));
  MasterClaim claim;
  claim.holder = "host/1/2";
  claim.time = std::chrono::milliseconds{5};
  const auto first = claim_job(map, "job", claim);
  claim.force = true;
  const auto forced = claim_job(map, "job", claim);
  if (!first) return;
  if (!forced) return;
  SPEEDO_ASSERT(forced->granted);
  claim.term = 1;
  claim.holder = "host/3/4";
  claim.force = false;
  static_cast<void>(claim_job(map, "job", claim));
  static_cast<void>(release_job(map, "job", claim));
}

SPEEDO_FUZZ_TARGET(record)(Bytes bytes) {
  const std::string text = text_of(bytes);
  claim_mastership(text);
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
