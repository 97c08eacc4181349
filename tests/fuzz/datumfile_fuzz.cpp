// SpeeDO's own files of Datums.
#include "data/datum/datum_source.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/read_records.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(datumfile)(Bytes bytes) {
  const MemoryFile file(bytes);
  read_records(DatumSource::open_datumfile(file.path(), ImageColor::kNative));
}

}  // namespace
}  // namespace speedo::fuzz
