#include "train/parts/part_copy.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <speedo/store/part_store.hpp>

#include "store/read_once.hpp"

namespace speedo {
namespace {

std::string copy_key(std::size_t part) { return part_key(part, "copy"); }

Result<void> put_copy(RecordStore& store, std::size_t part, const part_answer::Copied& copy) {
  std::vector<float> values = copy.weights;
  for (const auto& history : copy.histories) {
    values.insert(values.end(), history.begin(), history.end());
  }
  RecordInfo info;
  info.version = copy.id;
  info.element_count = values.size();
  return put(store, copy_key(part), info, values);
}

}  // namespace

PartAnswer with_copy_stored(RecordStore& store, std::size_t part, PartAnswer answer) {
  const auto* const copied = std::get_if<part_answer::Copied>(&answer);
  if (copied == nullptr) return answer;
  const std::uint64_t id = copied->id;
  if (const auto put = put_copy(store, part, *copied); !put) {
    return part_answer::Failed{id, put.error()};
  }
  return part_answer::Copied{.id = id, .weights = {}, .histories = {}};
}

Result<part_answer::Copied> get_copy(RecordStore& store, std::size_t part, std::uint64_t order,
                                     std::size_t part_count) {
  part_answer::Copied copy{.id = order, .weights = {}, .histories = {}};
  if (part_count == 0) return copy;
  SPEEDO_ASSIGN(const auto reader, store.read(copy_key(part)));
  const RecordInfo& info = reader->info();
  if (info.version != order || info.element_count == 0 || info.element_count % part_count != 0) {
    return Error{ErrorCode::kMismatch,
                 "the copy of part " + std::to_string(part) + " in the store is another one"};
  }
  std::vector<float> values(info.element_count);
  SPEEDO_TRY(get_once(store, copy_key(part), info.model, values));
  const auto length = static_cast<std::ptrdiff_t>(part_count);
  for (auto from = values.begin(); from != values.end(); from += length) {
    if (from == values.begin()) {
      copy.weights.assign(from, from + length);
    } else {
      copy.histories.emplace_back(from, from + length);
    }
  }
  return copy;
}

}  // namespace speedo
