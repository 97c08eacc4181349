#include "train/states/state_before_run.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {

// Memory for another stage's arrays comes after that of the last one's is free.
Result<void> StateBeforeRun::follow(Backend& backend, std::vector<const Arena*> arrays) {
  backend_ = &backend;
  run_ = kNoRun;
  arrays_.clear();
  for (const Arena* const array : arrays) {
    SPEEDO_ASSIGN(Arena kept, Arena::create(backend, array->size()));
    arrays_.emplace_back(array, std::move(kept));
  }
  return {};
}

void StateBeforeRun::keep(std::uint64_t run, const Counts& counts) {
  run_ = run;
  counts_ = counts;
  for (auto& [array, kept] : arrays_) backend_->copy(kept.size(), array->data(), kept.data());
}

void StateBeforeRun::download(std::span<float> values) const {
  for (const auto& [array, kept] : arrays_) {
    const auto count = static_cast<std::size_t>(kept.size());
    SPEEDO_ASSERT(count <= values.size());
    backend_->device().download(values.first(count), kept.data());
    values = values.subspan(count);
  }
}

}  // namespace speedo
