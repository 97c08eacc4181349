#include "train/states/worker_state.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/train/merge.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

static_assert(std::endian::native == std::endian::little, "files hold floats as they lie here");

constexpr std::string_view kMagic = "SPEEDOW1";
constexpr std::size_t kPrefixBytes = 24;
// No worker lives to make so many, and the sum over the states of a mean fits its type.
constexpr std::int64_t kUpdatesHeldMax = std::int64_t{1} << 48U;

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

std::uint64_t sum_of(std::string_view bytes) {
  return checksum_of(std::as_bytes(std::span(bytes)));
}

// No sum of them overflows.
bool counts_fit(const record::WorkerState& head, std::uint64_t floats) {
  return head.weights() <= floats && head.histories() <= floats && head.residual() <= floats &&
         head.weights() + head.histories() + head.residual() == floats;
}

Error damaged(const std::string& name, std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("the worker's state '{}' {}", name, what)};
}

Result<void> check_head(const record::WorkerState& head, std::uint64_t floats,
                        const std::string& name) {
  if (!counts_fit(head, floats)) return damaged(name, "has a head that does not fit its numbers");
  if (head.has_data_parts() && head.data_part() >= head.data_parts()) {
    return damaged(name, "has a damaged head: its data begin nowhere");
  }
  const std::int64_t updates = head.updates_held();
  if (updates >= 0 && updates <= kUpdatesHeldMax) return {};
  return damaged(name, fmt::format("has a damaged head: its histories hold {} updates", updates));
}

Result<void> check_numbers(const std::vector<float>& values, const std::string& name) {
  if (all_finite(values)) return {};
  return damaged(name, "has numbers that are NaN or infinite");
}

}  // namespace

bool keeps_own_histories(const UpdateSpec& spec) {
  return spec.kind != UpdateKind::kGradientOnly && spec.updater == UpdaterState::kKeep;
}

// The stages may come again: after the last one the first one is.
bool may_hold_histories(const std::vector<UpdateSpec>& stages, std::size_t stage) {
  for (std::size_t ahead = 0; ahead < stages.size(); ++ahead) {
    const UpdateSpec& next = stages[(stage + ahead) % stages.size()];
    if (keeps_own_histories(next)) return true;
    const bool has_others = averages_histories(next) || next.updater == UpdaterState::kReset;
    if (ahead > 0 && has_others) return false;
  }
  return false;
}

bool may_hold_residual(const std::vector<UpdateSpec>& stages, std::size_t stage) {
  const UpdateKind kind = stages[stage].kind;
  if (is_elastic(kind)) return false;
  // The stages may come again: before the first one the last one was.
  for (std::size_t back = 0; back < stages.size(); ++back) {
    const UpdateSpec& earlier = stages[(stage + stages.size() - back) % stages.size()];
    if (earlier.kind != kind) return false;
    if (carries_residual(earlier)) return true;
  }
  return false;
}

std::string state_key(std::uint64_t term, std::uint64_t worker) {
  return contribution_key(term, worker) + "/state";
}

std::string seat_key(std::uint64_t term, std::uint64_t seat) {
  return handout_key_prefix() + std::to_string(term) + "/seat/" + std::to_string(seat);
}

Result<void> put_state(RecordStore& store, const std::string& key, const StateOfWorker& state) {
  const record::WorkerState& head = state.head;
  return put(store, key,
             {.model = {head.model_high(), head.model_low()},
              .version = head.iteration(),
              .worker = head.worker(),
              .term = head.term(),
              .state = head.SerializeAsString()},
             state.values);
}

// A worker may write what it likes there: nothing of it is believed that is not looked at.
Result<StateOfWorker> get_state(RecordStore& store, const std::string& key, const Digest& model,
                                std::uint64_t arena) {
  SPEEDO_ASSIGN(const std::unique_ptr<RecordReader> reader, store.read(key));
  const RecordInfo& info = reader->info();
  StateOfWorker state;
  if (!state.head.ParseFromString(info.state)) return damaged(key, "has a damaged head");
  SPEEDO_TRY(check_head(state.head, info.element_count, key));
  if (info.model != model) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("the worker's state '{}' is of model {}, this net is {}", key,
                             to_string(info.model), to_string(model))};
  }
  const std::uint64_t most = kStateArraysMax * arena;
  if (info.element_count > most) {
    return damaged(key, fmt::format("claims {} numbers, and a worker of this net has {} at most",
                                    info.element_count, most));
  }
  state.values.resize(static_cast<std::size_t>(info.element_count));
  const std::size_t chunks = chunk_count(info.element_count);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    reader->request(chunk, chunk_of(std::span(state.values), chunk));
  }
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) SPEEDO_TRY(reader->wait(chunk));
  SPEEDO_TRY(check_numbers(state.values, key));
  return state;
}

std::string to_file_bytes(const StateOfWorker& state) {
  const std::string head = state.head.SerializeAsString();
  const std::size_t numbers = state.values.size() * sizeof(float);
  std::string bytes(kMagic);
  bytes.reserve(kPrefixBytes + head.size() + numbers);
  append(bytes, std::uint64_t{0});
  append(bytes, static_cast<std::uint64_t>(head.size()));
  bytes.append(head);
  bytes.append(reinterpret_cast<const char*>(state.values.data()), numbers);
  const std::uint64_t sum = sum_of(std::string_view(bytes).substr(2 * sizeof(std::uint64_t)));
  std::memcpy(bytes.data() + kMagic.size(), &sum, sizeof(sum));
  return bytes;
}

Result<StateOfWorker> parse_state_file(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with(kMagic)) {
    return damaged(name, bytes.size() < kMagic.size() ? "is truncated" : "is no worker's state");
  }
  if (bytes.size() < kPrefixBytes) return damaged(name, "is truncated");
  if (sum_of(bytes.substr(2 * sizeof(std::uint64_t))) != number_at(bytes, kMagic.size())) {
    return damaged(name, "is truncated or damaged: its checksum is wrong");
  }
  const std::uint64_t head_bytes = number_at(bytes, 2 * sizeof(std::uint64_t));
  std::string_view rest = bytes.substr(kPrefixBytes);
  StateOfWorker state;
  if (head_bytes > rest.size() ||
      !state.head.ParseFromArray(rest.data(), static_cast<int>(head_bytes))) {
    return damaged(name, "has a damaged head");
  }
  rest.remove_prefix(static_cast<std::size_t>(head_bytes));
  if (rest.size() % sizeof(float) != 0) return damaged(name, "has a part of a number at its end");
  SPEEDO_TRY(check_head(state.head, rest.size() / sizeof(float), name));
  state.values.resize(rest.size() / sizeof(float));
  if (!rest.empty()) std::memcpy(state.values.data(), rest.data(), rest.size());
  SPEEDO_TRY(check_numbers(state.values, name));
  return state;
}

bool are_alike(const record::WorkerState& a, const record::WorkerState& b) {
  return a.model_high() == b.model_high() && a.model_low() == b.model_low() &&
         a.stage() == b.stage() && a.kind() == b.kind() && a.weights() == b.weights() &&
         a.histories() == b.histories() && a.residual() == b.residual() &&
         UpdateRule::have_same_histories(a.solver_type(), b.solver_type());
}

StateOfWorker mean_of(std::vector<StateOfWorker> states, bool adds_residuals) {
  SPEEDO_ASSERT(!states.empty());
  StateOfWorker mean = std::move(states.front());
  if (states.size() == 1) return mean;
  std::vector<double> sums(mean.values.begin(), mean.values.end());
  std::int64_t updates = mean.head.updates_held();
  for (std::size_t k = 1; k < states.size(); ++k) {
    SPEEDO_ASSERT(are_alike(mean.head, states[k].head));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += states[k].values[i];
    updates += states[k].head.updates_held();
  }
  const auto count = static_cast<double>(states.size());
  const std::size_t means = sums.size() - (adds_residuals ? mean.residual().size() : 0);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    mean.values[i] = static_cast<float>(i < means ? sums[i] / count : sums[i]);
  }
  mean.head.set_updates_held(updates / static_cast<std::int64_t>(states.size()));
  return mean;
}

std::vector<std::size_t> states_at(std::size_t seat, std::size_t seats, std::size_t states) {
  std::vector<std::size_t> found;
  for (std::size_t each = seat; each < states; each += seats) found.push_back(each);
  return found;
}

}  // namespace speedo
