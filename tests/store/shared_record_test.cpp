// Records in shared memory: what readers may see of them, whatever their writer does meanwhile.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <speedo/store/memory_store.hpp>

#include "store/chunk_range.hpp"
#include "store/shared/memory_exchange.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kFloats = 2 * kChunkElements + 17;  // three chunks
const RecordShape kThree{.slots = 3, .element_count = kFloats, .model = {7, 9}};

std::shared_ptr<RecordMemory> memory_of(const RecordShape& shape) {
  auto memory = RecordMemory::create(shape);
  INFO((memory ? "" : memory.error().message));
  REQUIRE(memory);
  return *memory;
}

std::shared_ptr<const SharedRecord> view_of(const RecordMemory& memory) {
  auto record = SharedRecord::make(memory.board(), memory.values());
  REQUIRE(record);
  return *record;
}

// As another process has it.
std::shared_ptr<const SharedRecord> map_again(const RecordMemory& memory) {
  auto board = SharedMemory::map(dup(memory.board()->descriptor()));
  auto values = SharedMemory::map(dup(memory.values()->descriptor()));
  REQUIRE(board);
  REQUIRE(values);
  auto record = SharedRecord::make(*board, *values);
  REQUIRE(record);
  return *record;
}

const std::size_t kPageBytes = static_cast<std::size_t>(getpagesize());

// Of the memory, how many pages this process need not fault in.
std::size_t pages_mapped(const SharedMemory& memory) {
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
  std::vector<std::uint64_t> pages(memory.bytes() / kPageBytes);
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data()) / kPageBytes;
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const auto bytes = static_cast<ssize_t>(pages.size() * sizeof(pages[0]));
  REQUIRE(pread(map, pages.data(), pages.size() * sizeof(pages[0]),
                static_cast<off_t>(first * sizeof(pages[0]))) == bytes);
  close(map);
  return static_cast<std::size_t>(
      std::ranges::count_if(pages, [](std::uint64_t page) { return (page & kPresent) != 0; }));
}

// Since Linux 5.14.
bool can_populate(int descriptor) {
#ifdef MADV_POPULATE_READ
  void* const page = mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, descriptor, 0);
  REQUIRE(page != MAP_FAILED);
  const bool can = madvise(page, kPageBytes, MADV_POPULATE_READ) == 0;
  munmap(page, kPageBytes);
  return can;
#else
  static_cast<void>(descriptor);
  return false;
#endif
}

RecordInfo info_of(const RecordShape& shape, std::uint64_t version) {
  RecordInfo info;
  info.model = shape.model;
  info.element_count = shape.element_count;
  info.version = version;
  info.base_version = version + 1;
  info.worker = version + 2;
  info.term = version + 3;
  return info;
}

void write_version(RecordMemory& memory, std::size_t slot, std::uint64_t version) {
  memory.open(slot, version);
  for (std::size_t chunk = 0; chunk < chunk_count(memory.shape().element_count); ++chunk) {
    std::ranges::fill(chunk_of(memory.slot(slot), chunk), static_cast<float>(version));
    memory.show(slot, chunk);
  }
  memory.finish(slot, info_of(memory.shape(), version));
}

}  // namespace

TEST_CASE("a record in shared memory is seen chunk by chunk, and whole when it is finished",
          "[shared]") {
  const auto memory = memory_of(kThree);
  const auto record = map_again(*memory);
  CHECK(record->shape().element_count == kFloats);
  CHECK(record->shape().model == kThree.model);
  CHECK_FALSE(record->newest());
  CHECK_FALSE(record->begun(5));

  memory->open(1, 5);
  const auto begun = record->begun(5);
  REQUIRE(begun);
  CHECK_FALSE(record->has(*begun, 2));
  const std::span<float> last = chunk_of(memory->slot(1), 2);
  REQUIRE(last.size() == 17);
  std::iota(last.begin(), last.end(), 1.0F);
  memory->show(1, 2);
  CHECK(record->has(*begun, 2));
  CHECK_FALSE(record->has(*begun, 0));
  CHECK(std::ranges::equal(record->chunk(*begun, 2), last));
  CHECK_FALSE(record->newest());

  write_version(*memory, 2, 6);
  const auto newest = record->newest();
  REQUIRE(newest);
  CHECK(newest->info.version == 6);
  CHECK(newest->info.base_version == 7);
  CHECK(newest->info.worker == 8);
  CHECK(newest->info.term == 9);
  CHECK(newest->info.element_count == kFloats);
  CHECK(record->chunk(*newest, 1).front() == 6.0F);
  CHECK(record->has(*begun, 2));  // Another slot.

  memory->open(2, 7);
  CHECK_FALSE(record->newest());
  CHECK_FALSE(record->has(*newest, 1));
  CHECK_FALSE(record->is_still(*newest));
}

TEST_CASE("what is finished outlives its writer, unless it is withdrawn", "[shared]") {
  auto memory = memory_of(kThree);
  write_version(*memory, 0, 1);
  const auto record = map_again(*memory);
  const auto newest = record->newest();
  REQUIRE(newest);
  SECTION("withdrawn") {
    memory->withdraw();
    CHECK_FALSE(record->newest());
    CHECK_FALSE(record->is_still(*newest));
  }
  SECTION("gone") {
    memory.reset();
    CHECK(record->newest());
    CHECK(record->has(*newest, 2));
  }
  CHECK(record->chunk(*newest, 0).front() == 1.0F);  // Mapped as long as there is a reader.
}

TEST_CASE("what a process that was killed has finished is whole, what it had begun is not there",
          "[shared]") {
  const auto memory = memory_of(kThree);
  const auto record = view_of(*memory);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    write_version(*memory, 0, 3);
    memory->open(1, 4);
    memory->show(1, 0);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto newest = record->newest();
  REQUIRE(newest);
  CHECK(newest->info.version == 3);
  for (std::size_t chunk = 0; chunk < 3; ++chunk) {
    REQUIRE(record->has(*newest, chunk));
    CHECK(record->chunk(*newest, chunk).back() == 3.0F);
  }
  const auto begun = record->begun(4);
  REQUIRE(begun);
  CHECK(record->has(*begun, 0));
  CHECK_FALSE(record->has(*begun, 1));
}

TEST_CASE("a reader never counts values of two versions, however fast they are written",
          "[shared]") {
  const auto memory = memory_of(kThree);
  const auto record = map_again(*memory);
  std::atomic<bool> ended{false};
  std::thread writer([&] {
    for (std::uint64_t version = 1; !ended; ++version) {
      write_version(*memory, version % 3, version);
    }
  });
  std::uint64_t counted = 0, torn = 0, last = 0;
  std::vector<float> copy(kChunkElements);
  while (counted < 1000) {
    const auto newest = record->newest();
    if (!newest) continue;
    REQUIRE(newest->info.version >= last);
    last = newest->info.version;
    const std::size_t chunk = counted % 2;
    if (counted % 5 == 0) std::this_thread::yield();
    std::ranges::copy(record->chunk(*newest, chunk), copy.begin());
    if (!record->has(*newest, chunk)) {
      torn += 1;
      continue;
    }
    counted += 1;
    // One value after the other the same, and the first the version's: quick, as the writer is.
    const bool is_one = copy.front() == static_cast<float>(newest->info.version) &&
                        std::memcmp(copy.data(), copy.data() + 1,
                                    (copy.size() - 1) * sizeof(float)) == 0;
    if (!is_one) {
      ended = true;
      writer.join();
      FAIL("version " << newest->info.version << " has values of another one");
    }
  }
  ended = true;
  writer.join();
  CAPTURE(torn);
  CHECK(last > 3);
}

TEST_CASE("memory that is no record is refused", "[shared]") {
  const auto memory = memory_of(kThree);
  const auto other = [](std::size_t bytes) {
    auto made = SharedMemory::create(bytes);
    REQUIRE(made);
    return *made;
  };
  const auto refuse = [](std::shared_ptr<const SharedMemory> board,
                         std::shared_ptr<const SharedMemory> values) {
    const auto record = SharedRecord::make(std::move(board), std::move(values));
    REQUIRE_FALSE(record);
    CHECK(record.error().code == ErrorCode::kMismatch);
  };
  refuse(other(8), memory->values());
  refuse(other(1 << 20), memory->values());
  refuse(memory->board(), other(4096));
  const std::size_t bytes = memory->board()->bytes();
  for (const std::size_t field : {0U, 8U, 16U}) {
    auto board = other(bytes);
    std::memcpy(board->data(), memory->board()->data(), bytes);
    std::memset(board->data() + field, 0xFF, 8);
    refuse(board, memory->values());
    std::memset(board->data() + field, 0, 8);
    refuse(board, memory->values());
  }
  auto shorter = other(bytes - 8);
  std::memcpy(shorter->data(), memory->board()->data(), bytes - 8);
  refuse(shorter, memory->values());
}

TEST_CASE("only memory of a final size is mapped", "[shared]") {
  const auto refuse = [](int descriptor) {
    const auto mapped = SharedMemory::map(descriptor);
    REQUIRE_FALSE(mapped);
    CHECK(mapped.error().code == ErrorCode::kMismatch);
  };
  refuse(-1);
  refuse(dup(STDIN_FILENO));
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  refuse(pipes[0]);
  close(pipes[1]);
  const int unsealed = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(unsealed, 4096) == 0);
  refuse(unsealed);
  const auto own = SharedMemory::create(5000);
  REQUIRE(own);
  CHECK(ftruncate((*own)->descriptor(), 100) != 0);
  const auto mapped = SharedMemory::map(dup((*own)->descriptor()));
  REQUIRE(mapped);
  CHECK((*mapped)->bytes() == 5000);
  const auto too_large = SharedMemory::create(std::size_t{1} << 60U);
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().code == ErrorCode::kFull);
}

TEST_CASE("memory that is mapped has its pages at once, if it has any", "[shared]") {
  constexpr std::size_t kBytes = std::size_t{8} << 20U;
  const auto own = SharedMemory::create(kBytes);
  REQUIRE(own);
  const auto mapped = SharedMemory::map(dup((*own)->descriptor()));
  REQUIRE(mapped);
  if (can_populate((*own)->descriptor())) CHECK(pages_mapped(**mapped) == kBytes / kPageBytes);

  const int holes = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(holes, kBytes) == 0);
  REQUIRE(fcntl(holes, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  const auto sparse = SharedMemory::map(dup(holes));
  REQUIRE(sparse);
  struct stat what {};
  REQUIRE(fstat(holes, &what) == 0);
  CHECK(what.st_blocks == 0);
  close(holes);
}

TEST_CASE("a store with shared memory before it keeps each record in one of both", "[shared]") {
  const auto base = make_memory_store("shared");
  SharedStore master(base), worker(base);
  const RecordShape one{.slots = 1, .element_count = kFloats, .model = kThree.model};
  const auto home = memory_of(one);
  worker.write_in("worker/1/2", home);
  master.read_from("worker/1/2", view_of(*home));
  REQUIRE(master.reads_in_place("worker/1/2"));
  CHECK_FALSE(master.read("worker/1/2"));

  home->open(0, 11);
  std::ranges::fill(home->slot(0), 2.5F);
  REQUIRE(put(worker, "worker/1/2", info_of(one, 11), home->slot(0)));
  CHECK_FALSE(base->read("worker/1/2"));
  const auto reader = master.read("worker/1/2");
  REQUIRE(reader);
  CHECK((*reader)->info().version == 11);
  CHECK((*reader)->in_place(2).data() == chunk_of(home->slot(0), 2).data());
  std::vector<float> values(kFloats);
  REQUIRE(get(master, "worker/1/2", one.model, values));
  CHECK(values == std::vector<float>(kFloats, 2.5F));

  // What was formed elsewhere is copied there.
  home->open(0, 12);
  const std::vector<float> elsewhere(kFloats, 3.5F);
  REQUIRE(put(worker, "worker/1/2", info_of(one, 12), elsewhere));
  CHECK(home->slot(0).back() == 3.5F);
  CHECK_FALSE((*reader)->confirm(0));
  CHECK((*reader)->in_place(0).empty());

  // Of another shape, or erased: through the store.
  RecordInfo shorter = info_of(one, 13);
  shorter.element_count = 5;
  REQUIRE(put(worker, "worker/1/3", shorter, std::span(elsewhere).first(5)));
  const std::vector<std::string> both{"worker/1/2", "worker/1/3", "worker/1/4"};
  const auto readers = master.read_all(both);
  REQUIRE(readers[0]);
  REQUIRE(readers[1]);
  CHECK((*readers[1])->info().version == 13);
  CHECK_FALSE(readers[2]);
  REQUIRE(master.erase("worker/1/2"));
  CHECK_FALSE(master.read("worker/1/2"));

  // A writer that is dropped leaves nothing.
  home->open(0, 14);
  worker.write("worker/1/2", info_of(one, 14))->write(0, chunk_of(std::span(elsewhere), 0));
  CHECK_FALSE(view_of(*home)->newest());
  const auto again = view_of(*home)->begun(14);
  REQUIRE(again);
  CHECK_FALSE(view_of(*home)->has(*again, 0));
}

}  // namespace speedo::test
