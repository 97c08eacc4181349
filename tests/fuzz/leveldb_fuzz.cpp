// A LevelDB folder whose log, MANIFEST and table are the input's, and a single block of a table.
#include <filesystem>
#include <fstream>
#include <string>

#include "data/leveldb/leveldb_source.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/leveldb_files.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/read_records.hpp"
#include "support/temp_dir.hpp"

namespace speedo::fuzz {
namespace {

void write(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// One folder for all inputs: each writes all of its files.
void read_folder(const std::string& manifest, const std::string& log, const std::string& table) {
  static const TempDir folder;
  write(folder / "CURRENT", "MANIFEST-000002\n");
  write(folder / "MANIFEST-000002", manifest);
  write(folder / "000003.log", log);
  write(folder / "000005.ldb", table);
  read_records(LeveldbSource::open(folder.path(), ImageColor::kNative));
}

void read_one_block(const std::string& block, char kind) {
  const MemoryFile file(block_with_trailer(block, kind));
  const auto opened = RandomFile::open(file.path());
  SPEEDO_ASSERT(opened);
  const BlockPlace place{0, block.size()};
  static_cast<void>(peek_lone_entry(*opened, place));
  std::vector<std::byte> packed, plain;
  if (!read_block(*opened, place, packed, plain)) return;
  BlockEntries entries(plain);
  while (entries.next()) parse_block_place(entries.entry().value);
}

SPEEDO_FUZZ_TARGET(leveldb)(Bytes bytes) {
  Input input(bytes);
  const unsigned which = input.byte() % 4U;
  if (which < 2) {
    read_one_block(input.text(), static_cast<char>(which));
    return;
  }
  const std::string manifest = text_of(input.piece()), log = text_of(input.piece());
  const std::string table = input.text();
  if (which == 2) {
    read_folder(manifest, log, table);
  } else {
    read_folder(with_log_checksums(manifest), with_log_checksums(log), with_table_checksums(table));
  }
}

}  // namespace
}  // namespace speedo::fuzz
