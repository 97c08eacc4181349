#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace speedo::test {

// Memory in which nobody gets lost: each block has zones before and behind it that nobody may
// write, blocks are never given out twice, and what was not written yet is poison.
class WatchedMemory {
 public:
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool is_alive = true;
    bool is_open = false;
    bool was_damaged = false;  // a zone of it, as was reported

    std::string name() const;
  };

  // What poison is as a word: a quiet NaN with a mark of its own, which arithmetic carries on.
  static constexpr unsigned kPoison = 0x7fe1deadU;

  // `guarded`: no one can follow an address of a block but between open() and close().
  explicit WatchedMemory(bool guarded);
  ~WatchedMemory();
  WatchedMemory(const WatchedMemory&) = delete;
  WatchedMemory& operator=(const WatchedMemory&) = delete;

  // 256-byte aligned, poison. Requires: bytes > 0, and no more than 16 GiB in all.
  Block& allocate(std::size_t bytes);
  // Its addresses stay known, and cannot be followed any more. Whether its zones were as they were.
  bool release(Block& block);
  // The block that an address is of, its zones included, dead or alive; null: none.
  Block* find(const void* address);
  bool has(const void* address) const;
  const std::map<const std::byte*, Block>& blocks() const { return blocks_; }

  // Does nothing to blocks of others.
  void open(Block& block);
  // All blocks that are open.
  void close();
  // Whether its zones are as they were. Requires: it can be followed now.
  static bool is_intact(const Block& block);

 private:
  // The first offset from there on at which a huge page begins.
  std::size_t up_to_huge_page(std::size_t offset) const;

  const bool guarded_;
  std::vector<Block*> open_;
  std::byte* addresses_ = nullptr;  // that are given out one after the other
  std::size_t used_ = 0;
  std::map<const std::byte*, Block> blocks_;  // by where their pages begin
};

// Overwrites memory with poison.
void spoil(void* memory, std::size_t bytes);
// The first word of poison, by its place in bytes, if there is one.
std::optional<std::size_t> find_poison(const void* memory, std::size_t bytes);

}  // namespace speedo::test
