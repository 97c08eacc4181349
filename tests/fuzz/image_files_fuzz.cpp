// MNIST's pair of idx files and CIFAR's binaries, plain or packed by gzip.
#include "data/image/image_files.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/read_records.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(image_files)(Bytes bytes) {
  Input input(bytes);
  const bool is_cifar = input.flag();
  const MemoryFile first(input.piece()), second(input.left());
  looks_like_idx_images(first.path());
  looks_like_cifar(first.path());
  if (is_cifar) {
    read_records(open_cifar({first.path(), second.path()}));
  } else {
    read_records(open_idx(first.path(), second.path()));
  }
}

}  // namespace
}  // namespace speedo::fuzz
