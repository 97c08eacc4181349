// A serialized Datum, with raw values or an encoded image in it.
#include <speedo/base/assert.hpp>

#include "caffe.pb.h"
#include "data/datum/datum.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(datum)(Bytes bytes) {
  Input input(bytes);
  DatumDecoder decoder(static_cast<ImageColor>(input.byte() % 3U));
  Record record;
  if (!decoder.decode(input.left(), record)) return;
  SPEEDO_ASSERT(record.bytes.size() + record.floats.size() ==
                static_cast<std::size_t>(record.count()));
  caffe::Datum datum;
  std::string written;
  encode_datum(record, datum, written);
  Record again;
  SPEEDO_ASSERT(decoder.decode(std::as_bytes(std::span(written)), again));
  SPEEDO_ASSERT(again.bytes == record.bytes && again.count() == record.count());
}

}  // namespace
}  // namespace speedo::fuzz
