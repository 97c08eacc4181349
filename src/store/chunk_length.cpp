#include <speedo/base/assert.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {
namespace {

constexpr std::size_t kLineFloats = 16;  // of a cache line, which no two threads may write to

thread_local std::size_t length_here = kChunkElements;

}  // namespace

std::size_t chunk_length() { return length_here; }

ShortChunks::ShortChunks(std::size_t elements) : before_(length_here) {
  SPEEDO_ASSERT(elements > 0 && elements <= kChunkElements && elements % kLineFloats == 0);
  length_here = elements;
}

ShortChunks::~ShortChunks() { length_here = before_; }

}  // namespace speedo
