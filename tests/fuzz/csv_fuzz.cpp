// Tables of numbers, plain or packed by gzip.
#include "data/csv.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/read_records.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(csv)(Bytes bytes) {
  Input input(bytes);
  const unsigned flags = input.byte();
  CsvOptions options;
  options.label_first = (flags & 1U) != 0;
  options.header = (flags & 2U) != 0;
  options.floats = (flags & 4U) != 0;
  if ((flags & 8U) != 0) options.delimiter = ';';
  if ((flags & 16U) != 0) options.dims = {1, 2, 2};
  if ((flags & 32U) != 0) options.scale = 255.0F;
  const MemoryFile file(input.left());
  read_records(open_csv(file.path(), options));
}

}  // namespace
}  // namespace speedo::fuzz
