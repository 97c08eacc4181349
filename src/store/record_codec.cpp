#include "store/record_codec.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "speedo.pb.h"

#include <speedo/base/assert.hpp>
#include <speedo/base/digest.hpp>

#include "base/parse_number.hpp"
#include "store/chunk_range.hpp"

static_assert(std::endian::native == std::endian::little,
              "values lie in the store as they lie in memory");

namespace speedo {
namespace {

constexpr std::string_view kChunkMagic = "SPEEDOC1";
constexpr std::string_view kManifestMagic = "SPEEDOM2";
constexpr std::string_view kOlderManifestMagic = "SPEEDOM1";
constexpr std::string_view kBlobMagic = "SPEEDOB1";
constexpr std::string_view kTermStart = ":t";
constexpr std::uint32_t kPlainChunk = 0;  // instead of the codec's number

template <class Number>
void append(std::string& bytes, Number value) {
  std::array<char, sizeof value> raw;
  std::memcpy(raw.data(), &value, sizeof value);
  bytes.append(raw.data(), raw.size());
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint64_t text_checksum(std::string_view text) {
  return checksum_of(std::as_bytes(std::span(text.data(), text.size())));
}

std::string frame_head(std::string_view magic, std::string_view rest) {
  std::string head(magic);
  append(head, text_checksum(rest));
  return head;
}

Result<std::string_view> unframe(std::string_view magic, std::string_view bytes) {
  if (bytes.size() < kFrameHeadBytes || !bytes.starts_with(magic)) {
    return Error{ErrorCode::kCorrupt, "does not begin with " + std::string(magic)};
  }
  const std::string_view rest = bytes.substr(kFrameHeadBytes);
  if (number_at<std::uint64_t>(bytes, magic.size()) != text_checksum(rest)) {
    return Error{ErrorCode::kCorrupt, "has a wrong checksum"};
  }
  return rest;
}

Error damaged_manifest(std::string what) { return {ErrorCode::kCorrupt, std::move(what)}; }

// Of a record that only another SpeeDO can read.
Error foreign(const std::string& what) {
  return {ErrorCode::kMismatch,
          what + ": go on with the SpeeDO that wrote it, or from a checkpoint in files "
                 "(--resume=FILE), or start anew without --resume"};
}

// Whether this program knows the form that the chunks have.
Result<void> check_form(const record::Manifest& message) {
  if (!codec_kind(message.codec())) {
    return foreign("has values in codec " + std::to_string(message.codec()) +
                   ", which this SpeeDO does not know");
  }
  if (message.chunk_elements() != chunk_length()) {
    return damaged_manifest("has chunks of " + std::to_string(message.chunk_elements()) +
                            " floats, this program uses " + std::to_string(chunk_length()));
  }
  if (message.servers() == 0 || message.servers() > kRecordServersMax) {
    return damaged_manifest("says that its chunks are on " + std::to_string(message.servers()) +
                            " servers");
  }
  if (message.slots_size() != 0 &&
      static_cast<std::uint32_t>(message.slots_size()) != message.servers()) {
    return damaged_manifest("names slots of " + std::to_string(message.slots_size()) + " of " +
                            std::to_string(message.servers()) + " servers");
  }
  return {};
}

Result<std::vector<ManifestChunk>> decode_chunks(const record::Manifest& message) {
  const CodecKind codec = *codec_kind(message.codec());
  const auto count = static_cast<std::size_t>(message.chunk_size());
  if (count != chunk_count(message.element_count())) {
    return damaged_manifest("names " + std::to_string(count) + " chunks for " +
                            std::to_string(message.element_count()) + " floats");
  }
  std::vector<ManifestChunk> chunks;
  chunks.reserve(count);
  for (const record::Manifest::Chunk& entry : message.chunk()) {
    const std::size_t chunk = chunks.size();
    const std::size_t elements = chunk_elements(message.element_count(), chunk);
    const CodecBytes bytes = encoded_bytes(codec, elements);
    if (entry.bytes() < bytes.min || entry.bytes() > bytes.max) {
      return damaged_manifest(
          "says that chunk " + std::to_string(chunk) + " has " + std::to_string(entry.bytes()) +
          " bytes, " + to_string(CodecSpec{.kind = codec}) + " makes " + std::to_string(bytes.min) +
          " to " + std::to_string(bytes.max) + " of its values");
    }
    if (entry.server() != chunk % message.servers()) {
      return damaged_manifest("says that chunk " + std::to_string(chunk) + " is on server " +
                              std::to_string(entry.server()) + " of " +
                              std::to_string(message.servers()));
    }
    chunks.push_back({entry.checksum(), entry.bytes(), entry.server()});
  }
  return chunks;
}

}  // namespace

std::string job_prefix(std::string_view job) {
  return std::string(kJobKeyStart) + std::string(job) + "}:";
}

std::string job_of_record_key(std::string_view key) {
  if (!key.starts_with(kJobKeyStart)) return {};
  key.remove_prefix(kJobKeyStart.size());
  const std::size_t end = key.find("}:");
  if (end == std::string_view::npos) return {};
  const std::string_view tag = key.substr(0, end);
  return std::string(tag.substr(0, tag.find(':')));
}

RecordKeys::RecordKeys(std::string_view job, std::string_view name)
    : prefix_(job_prefix(job) + std::string(name)) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/.";
  SPEEDO_ASSERT(!name.empty());
  SPEEDO_ASSERT(name.find_first_not_of(kAllowed) == std::string_view::npos);
}

std::string RecordKeys::chunk(std::uint64_t term, std::uint32_t slot, std::size_t chunk) const {
  const std::string fence = term == 0 ? "" : std::string(kTermStart) + std::to_string(term);
  return prefix_ + fence + ":s" + std::to_string(slot) + ":c" + std::to_string(chunk);
}

std::optional<ChunkName> fenced_chunk(std::string_view job, std::string_view key) {
  const std::string prefix = job_prefix(job);
  if (!key.starts_with(prefix)) return std::nullopt;
  const std::string_view name = key.substr(prefix.size());
  const std::size_t record = name.find(kTermStart);
  if (record == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(record + kTermStart.size());
  const std::size_t end = rest.find(":s");
  const auto term = parse_number<std::uint64_t>(rest.substr(0, end));
  if (end == std::string_view::npos || !term) return std::nullopt;
  return ChunkName{std::string(name.substr(0, record)), *term};
}

std::string encode_chunk_head(const ChunkHead& head) {
  std::string bytes(kChunkMagic);
  const bool is_plain = head.codec == CodecKind::kNone;
  append(bytes, head.version);
  append(bytes, static_cast<std::uint32_t>(head.chunk));
  append(bytes, is_plain ? kPlainChunk : static_cast<std::uint32_t>(head.codec));
  append(bytes, head.checksum);
  SPEEDO_ASSERT(bytes.size() == kChunkHeadBytes);
  return bytes;
}

std::optional<ChunkHead> decode_chunk_head(std::string_view bytes) {
  if (bytes.size() != kChunkHeadBytes || !bytes.starts_with(kChunkMagic)) return std::nullopt;
  const auto number = number_at<std::uint32_t>(bytes, 20);
  const auto codec =
      number == kPlainChunk ? std::optional(CodecKind::kNone) : codec_kind(number);
  if (!codec) return std::nullopt;
  return ChunkHead{.version = number_at<std::uint64_t>(bytes, 8),
                   .chunk = number_at<std::uint32_t>(bytes, 16),
                   .codec = *codec,
                   .checksum = number_at<std::uint64_t>(bytes, 24)};
}

std::string encode_manifest(const RecordManifest& manifest) {
  record::Manifest message;
  message.set_model_high(manifest.info.model.high);
  message.set_model_low(manifest.info.model.low);
  message.set_version(manifest.info.version);
  message.set_base_version(manifest.info.base_version);
  message.set_worker(manifest.info.worker);
  message.set_element_count(manifest.info.element_count);
  message.set_chunk_elements(chunk_length());
  message.set_codec(static_cast<std::uint32_t>(manifest.info.codec));
  message.set_slot(manifest.slot);
  for (const std::uint32_t slot : manifest.slots) message.add_slots(slot);
  if (manifest.servers > 1) message.set_servers(manifest.servers);
  if (manifest.info.term != 0) message.set_term(manifest.info.term);
  if (!manifest.info.state.empty()) message.set_state(manifest.info.state);
  for (const ManifestChunk& chunk : manifest.chunks) {
    record::Manifest::Chunk& entry = *message.add_chunk();
    entry.set_checksum(chunk.checksum);
    entry.set_bytes(chunk.bytes);
    entry.set_server(chunk.server);
  }
  const std::string rest = message.SerializeAsString();
  return frame_head(kManifestMagic, rest) + rest;
}

Result<RecordManifest> decode_manifest(std::string_view bytes) {
  if (unframe(kOlderManifestMagic, bytes)) {
    return foreign("is of layout 1, which an earlier SpeeDO wrote; this one knows layout 2");
  }
  SPEEDO_ASSIGN(const std::string_view rest, unframe(kManifestMagic, bytes));
  record::Manifest message;
  if (!message.ParseFromArray(rest.data(), static_cast<int>(rest.size()))) {
    return damaged_manifest("is not a speedo.record.Manifest");
  }
  SPEEDO_TRY(check_form(message));
  RecordManifest manifest;
  manifest.info.model = Digest{message.model_high(), message.model_low()};
  manifest.info.version = message.version();
  manifest.info.base_version = message.base_version();
  manifest.info.worker = message.worker();
  manifest.info.element_count = message.element_count();
  manifest.info.term = message.term();
  manifest.info.state = message.state();
  manifest.info.codec = *codec_kind(message.codec());
  manifest.slot = message.slot();
  manifest.servers = message.servers();
  manifest.slots.assign(message.slots().begin(), message.slots().end());
  SPEEDO_ASSIGN(manifest.chunks, decode_chunks(message));
  return manifest;
}

std::string encode_blob_head(std::string_view value) { return frame_head(kBlobMagic, value); }

Result<std::string_view> decode_blob(std::string_view bytes) { return unframe(kBlobMagic, bytes); }

}  // namespace speedo
