#include "store/shared/memory_exchange.hpp"

#include <utility>

#include "base/log.hpp"

namespace speedo {
namespace {

Result<std::shared_ptr<const SharedRecord>> view_of(const RecordMemory& memory) {
  return SharedRecord::make(memory.board(), memory.values());
}

class DirectExchange : public MemoryExchange {
 public:
  DirectExchange(std::shared_ptr<SharedStore> master, std::uint64_t term)
      : master_(std::move(master)), term_(term) {}

  Result<std::shared_ptr<const SharedRecord>> offer(std::string_view key,
                                                    const RecordMemory& memory) override {
    SPEEDO_ASSIGN(auto offered, view_of(memory));
    SPEEDO_ASSIGN(const auto weights, take_offer(*master_, term_, key, std::move(offered)));
    return view_of(*weights);
  }

 private:
  const std::shared_ptr<SharedStore> master_;
  const std::uint64_t term_;
};

}  // namespace

std::unique_ptr<MemoryExchange> meet_directly(std::shared_ptr<SharedStore> master,
                                              std::uint64_t term) {
  return std::make_unique<DirectExchange>(std::move(master), term);
}

Result<std::shared_ptr<RecordMemory>> take_offer(SharedStore& store, std::uint64_t term,
                                                 std::string_view key,
                                                 std::shared_ptr<const SharedRecord> offered) {
  if (!key.starts_with(contribution_key_prefix() + std::to_string(term) + '/')) {
    return Error{ErrorCode::kMismatch, "'" + std::string(key) + "' is no worker's of this master"};
  }
  auto weights = store.memory_of(weights_key());
  if (!weights) return Error{ErrorCode::kNotFound, "the master's weights are in no shared memory"};
  store.read_from(key, std::move(offered));
  return weights;
}

WorkerMemory::WorkerMemory(std::shared_ptr<RecordStore> store,
                           std::unique_ptr<MemoryExchange> exchange, std::string key)
    : store_(std::make_shared<SharedStore>(std::move(store))),
      exchange_(std::move(exchange)),
      key_(std::move(key)) {}

void WorkerMemory::share(const RecordShape& shape, std::shared_ptr<SharedMemory> values) {
  withdraw();
  memory_.reset();
  store_->write_in(key_, nullptr);
  store_->read_from(weights_key(), nullptr);
  const auto shared = try_to_share(shape, std::move(values));
  if (has_said_how_ || (shared && !memory_)) return;
  has_said_how_ = true;
  if (shared) {
    SPEEDO_INFO("Exchanging with the master through memory that both have");
  } else {
    SPEEDO_INFO("No memory is shared with the master, everything goes through the store: {}",
                shared.error().message);
  }
}

Result<void> WorkerMemory::try_to_share(const RecordShape& shape,
                                        std::shared_ptr<SharedMemory> values) {
  if (!values) {
    return Error{ErrorCode::kUnsupported,
                 "what is contributed lies in none that another process could be given"};
  }
  SPEEDO_ASSIGN(auto memory, RecordMemory::create(shape, std::move(values)));
  SPEEDO_ASSIGN(auto weights, exchange_->offer(key_, *memory));
  const bool fits = weights->shape().element_count == shape.element_count &&
                    weights->shape().model == shape.model;
  // The master is in another stage; this worker will be told.
  if (!fits) return {};
  store_->write_in(key_, memory);
  store_->read_from(weights_key(), std::move(weights));
  memory_ = std::move(memory);
  return {};
}

void WorkerMemory::withdraw() {
  if (memory_) memory_->withdraw();
}

void WorkerMemory::begin_run(std::uint64_t run) {
  if (memory_) memory_->open(0, run);
}

}  // namespace speedo
