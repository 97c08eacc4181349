#pragma once

#include <optional>
#include <string>

#include "data/leveldb/leveldb_block.hpp"

namespace speedo::fuzz {

// LevelDB checks most bytes of its files against checksums, which no change that is made at random
// gets right. These put the right ones where they belong.

// Of a log, or of a MANIFEST.
std::string with_log_checksums(std::string log);

// Of a table that ends in a footer: of the index block and of the blocks that it names, unless
// they are packed.
std::string with_table_checksums(std::string table);

// A block of a table with the bytes that stand behind it; kind 0: not packed, 1: by Snappy.
std::string block_with_trailer(std::string block, char kind);

}  // namespace speedo::fuzz
