// Files of named arrays.
#include <vector>

#include "formats/safetensors_file.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"

namespace speedo::fuzz {
namespace {

void read_tensors(const MemoryFile& file, std::uint64_t size) {
  const auto opened = SafetensorsFile::open(file.path());
  if (!opened) return;
  for (const StoredTensor& tensor : opened->tensors()) {
    SPEEDO_ASSERT(tensor.begin <= tensor.end && tensor.end <= size);
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
    static_cast<void>(opened->read(tensor, values));
  }
}

SPEEDO_FUZZ_TARGET(safetensors)(Bytes bytes) {
  read_tensors(MemoryFile(bytes), bytes.size());
  // The same header with the length that it has, and as many bytes of data as it may need.
  Input input(bytes);
  const std::string data(input.number<std::uint16_t>(), '\1');
  const std::string header = input.text();
  const std::uint64_t length = header.size();
  const std::string whole =
      std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
  read_tensors(MemoryFile(whole), whole.size());
}

}  // namespace
}  // namespace speedo::fuzz
