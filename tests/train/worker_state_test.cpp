// A worker's state in files, and states dealt out to other workers.

#include <cmath>
#include <limits>

#include "support/catch.hpp"

#include <speedo/store/memory_store.hpp>

#include "caffe.pb.h"
#include "train/states/saved_states.hpp"

namespace speedo {
namespace {

const Digest kStateModel{3, 4};
constexpr std::uint64_t kStateArena = 2;

// Of a net with two weights.
StateOfWorker made_state(std::uint64_t worker, float value) {
  StateOfWorker state;
  state.head.set_model_high(kStateModel.high);
  state.head.set_model_low(kStateModel.low);
  state.head.set_iteration(7);
  state.head.set_worker(worker);
  state.head.set_term(2);
  state.head.set_solver_type("SGD");
  state.head.set_kind(static_cast<std::uint32_t>(UpdateKind::kElastic));
  state.head.set_weights(2);
  state.head.set_histories(2);
  state.head.set_updates_held(static_cast<std::int64_t>(10 * value));
  state.values = {value, -value, 2 * value, 0.5F};
  return state;
}

SavedStates saved_of(const std::vector<StateOfWorker>& states) {
  return {states.size(), [states](std::size_t k) { return Result<StateOfWorker>(states[k]); }};
}

const StateOwner kStateOwner{kStateModel, "SGD", {UpdateSpec{.kind = UpdateKind::kElastic}}};

std::vector<float> values_at_seat(RecordStore& store, std::uint64_t seat) {
  auto state = get_state(store, seat_key(5, seat), kStateModel, kStateArena);
  if (!state) FAIL(state.error().message);
  return state->values;
}

std::string owner_refusal(const StateOfWorker& state, const StateOwner& owner) {
  const auto checked = check_owner(state.head, owner);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::kMismatch);
  CHECK(deal_states(saved_of({state}), 1, 5, owner, *make_memory_store())
            .error()
            .message.find("leave --snapshot-workers out") != std::string::npos);
  return checked.error().message;
}

}  // namespace

TEST_CASE("a state's file gives the state back; damaged anywhere it is refused by its name") {
  const StateOfWorker state = made_state(1, 3.0F);
  const std::string bytes = to_file_bytes(state);
  auto read = parse_state_file(bytes, "f");
  REQUIRE(read);
  CHECK(read->values == state.values);
  CHECK(read->head.SerializeAsString() == state.head.SerializeAsString());
  CHECK(read->weights()[1] == -3.0F);
  CHECK(read->histories()[0] == 6.0F);
  CHECK(read->residual().empty());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = parse_state_file(std::string_view(bytes).substr(0, size), "the file");
    REQUIRE_FALSE(cut);
    CHECK(cut.error().code == ErrorCode::kCorrupt);
    CHECK(cut.error().message.find("'the file'") != std::string::npos);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    CHECK_FALSE(parse_state_file(changed, "f"));
  }
}

TEST_CASE("a state whose head lies, or whose numbers are not finite, is refused") {
  StateOfWorker state = made_state(1, 3.0F);
  SECTION("too many") { state.head.set_residual(1); }
  SECTION("too few") { state.head.set_weights(1); }
  SECTION("so many that their sum fits again") {
    state.head.set_weights(std::uint64_t{1} << 63U);
    state.head.set_histories(std::uint64_t{1} << 63U);
    state.head.set_residual(4);
  }
  SECTION("its data begin behind their end") {
    state.head.set_data_part(2);
    state.head.set_data_parts(2);
  }
  SECTION("infinite") { state.values[2] = std::numeric_limits<float>::infinity(); }
  const auto read = parse_state_file(to_file_bytes(state), "f");
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::kCorrupt);
}

TEST_CASE("a state whose count of updates cannot be is refused where it is read") {
  const auto store = make_memory_store();
  for (const std::int64_t updates : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    StateOfWorker state = made_state(1, 3.0F);
    state.head.set_updates_held(updates);
    const auto read = parse_state_file(to_file_bytes(state), "the file");
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::kCorrupt);
    CHECK(read.error().message.find("'the file'") != std::string::npos);
    CHECK(read.error().message.find(std::to_string(updates) + " updates") != std::string::npos);
    REQUIRE(put_state(*store, state_key(2, 1), state));
    const auto got = get_state(*store, state_key(2, 1), kStateModel, kStateArena);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("of a state in the store no more numbers are read than a worker can have") {
  const auto store = make_memory_store();
  StateOfWorker state = made_state(1, 3.0F);
  state.head.set_residual(4);
  state.values.resize(8, 1.0F);
  REQUIRE(put_state(*store, state_key(2, 1), state));
  CHECK(get_state(*store, state_key(2, 1), kStateModel, kStateArena));
  state.head.set_residual(4 * chunk_length());
  const RecordInfo claims{.model = kStateModel,
                          .element_count = 4 + state.head.residual(),
                          .state = state.head.SerializeAsString()};
  state.values.resize(static_cast<std::size_t>(claims.element_count));
  REQUIRE(put(*store, state_key(2, 1), claims, state.values));
  const auto got = get_state(*store, state_key(2, 1), kStateModel, kStateArena);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == ErrorCode::kCorrupt);
  CHECK(got.error().message.find("10 at most") != std::string::npos);
}

TEST_CASE("a state in the store whose numbers are not finite is refused") {
  const auto store = make_memory_store();
  StateOfWorker state = made_state(1, 3.0F);
  state.values[2] = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(put_state(*store, state_key(2, 1), state));
  const auto got = get_state(*store, state_key(2, 1), kStateModel, kStateArena);
  REQUIRE_FALSE(got);
  CHECK(got.error().message.find("NaN") != std::string::npos);
}

TEST_CASE("a state has the arrays of a worker in its stage, or is of another form") {
  caffe::SolverParameter solver;
  solver.set_type("SGD");
  solver.set_base_lr(0.1F);
  solver.set_lr_policy("fixed");
  const std::vector<UpdateSpec>& stages = kStateOwner.stages;
  const StateOfWorker state = made_state(1, 1.0F);
  CHECK(check_sizes(state.head, stages, solver, kStateArena));
  StateOfWorker other = state;
  other.head.set_weights(0);
  CHECK(check_sizes(other.head, stages, solver, kStateArena));
  other.head.set_weights(1);
  CHECK_FALSE(check_sizes(other.head, stages, solver, kStateArena));
  other = state;
  other.head.set_histories(4);
  CHECK_FALSE(check_sizes(other.head, stages, solver, kStateArena));
  other = state;
  other.head.set_residual(2);
  CHECK_FALSE(check_sizes(other.head, stages, solver, kStateArena));
}

TEST_CASE("a state that cannot be read leaves its seat empty, or the mean to the others") {
  const auto store = make_memory_store();
  const SavedStates states{3, [](std::size_t k) -> Result<StateOfWorker> {
                             if (k == 1) return Error{ErrorCode::kCorrupt, "it is damaged"};
                             return made_state(k, static_cast<float>(k + 1));
                           }};
  REQUIRE(deal_states(states, 3, 5, kStateOwner, *store));
  CHECK(values_at_seat(*store, 0) == made_state(0, 1.0F).values);
  CHECK(values_at_seat(*store, 2) == made_state(2, 3.0F).values);
  CHECK(get_state(*store, seat_key(5, 1), kStateModel, kStateArena).error().code ==
        ErrorCode::kNotFound);
  REQUIRE(deal_states(states, 1, 6, kStateOwner, *store));
  const auto mean = get_state(*store, seat_key(6, 0), kStateModel, kStateArena);
  REQUIRE(mean);
  CHECK(mean->values == std::vector<float>{2.0F, -2.0F, 4.0F, 0.5F});
}

TEST_CASE("whose state is lost gets the place in the data that nobody else has, and zeros") {
  const auto store = make_memory_store();
  const std::size_t lost = GENERATE(0, 1, 2);
  const SavedStates states{3, [lost](std::size_t k) -> Result<StateOfWorker> {
                             if (k == lost) return Error{ErrorCode::kCorrupt, "it is damaged"};
                             StateOfWorker state = made_state(k + 4, 1.0F);
                             state.head.set_data_part(k);
                             state.head.set_data_parts(3);
                             state.head.set_steps_done(8);
                             return state;
                           }};
  StateOwner owner = kStateOwner;
  owner.offset_shards = true;
  owner.workers = 4;
  REQUIRE(deal_states(states, 4, 5, owner, *store));
  for (std::uint64_t seat = 0; seat < 3; ++seat) {
    const auto state = get_state(*store, seat_key(5, seat), kStateModel, kStateArena);
    if (!state) FAIL(state.error().message);
    CHECK(state->head.data_part() == seat);
    CHECK(state->head.data_parts() == 3);
    CHECK(state->head.steps_done() == 8);
    if (seat == lost) CHECK(state->values == std::vector<float>{0.0F, 0.0F});
  }
  CHECK_FALSE(get_state(*store, seat_key(5, 3), kStateModel, kStateArena));
}

TEST_CASE("a state that cannot be read now, or is lost where all are needed, is an error") {
  StateOwner owner = kStateOwner;
  const ErrorCode code = GENERATE(ErrorCode::kUnavailable, ErrorCode::kCorrupt);
  owner.needs_all = code == ErrorCode::kCorrupt;
  const SavedStates states{2, [code](std::size_t k) -> Result<StateOfWorker> {
                             if (k == 1) return Error{code, "its folder is away"};
                             return made_state(k, 1.0F);
                           }};
  const auto dealt = deal_states(states, 2, 5, owner, *make_memory_store());
  REQUIRE_FALSE(dealt);
  CHECK(dealt.error().code == code);
}

TEST_CASE("as many seats as states: each gets its own, bit for bit") {
  const auto store = make_memory_store();
  const auto states = saved_of({made_state(4, 0.1F), made_state(9, 0.7F)});
  REQUIRE(deal_states(states, 2, 5, kStateOwner, *store));
  CHECK(values_at_seat(*store, 0) == made_state(4, 0.1F).values);
  CHECK(values_at_seat(*store, 1) == made_state(9, 0.7F).values);
}

TEST_CASE("fewer seats than states: means of even shares, which leave the mean of all as it was") {
  const auto store = make_memory_store();
  const auto states = saved_of({made_state(0, 1.0F), made_state(1, 2.0F), made_state(2, 3.0F),
                             made_state(3, 6.0F)});
  CHECK(seats_for(states.count, 2) == 2);
  CHECK(seats_for(states.count, 9) == 4);
  REQUIRE(deal_states(states, 2, 5, kStateOwner, *store));
  CHECK(values_at_seat(*store, 0) == std::vector<float>{2.0F, -2.0F, 4.0F, 0.5F});
  CHECK(values_at_seat(*store, 1) == std::vector<float>{4.0F, -4.0F, 8.0F, 0.5F});
  const auto first = get_state(*store, seat_key(5, 0), kStateModel, kStateArena);
  CHECK(first->head.updates_held() == 20);
}

TEST_CASE("fewer seats where contributions are added one by one: residuals are added, too") {
  const auto store = make_memory_store();
  const UpdateSpec coded{.codec = {.kind = CodecKind::kThreshold}};
  StateOwner owner{kStateModel, "SGD", {UpdateSpec{}, coded}};
  std::vector<StateOfWorker> all;
  for (std::uint64_t worker = 0; worker < 2; ++worker) {
    StateOfWorker state = made_state(worker, static_cast<float>(1 + 2 * worker));
    state.head.set_stage(1);
    state.head.set_kind(static_cast<std::uint32_t>(UpdateKind::kFullDelta));
    state.head.set_weights(0);
    state.head.set_residual(2);
    all.push_back(state);
  }
  owner.adds_residuals = {true, false};
  REQUIRE(deal_states(saved_of(all), 1, 5, owner, *store));
  CHECK(values_at_seat(*store, 0) == std::vector<float>{2.0F, -2.0F, 4.0F, 0.5F});
  owner.adds_residuals = {false, true};
  REQUIRE(deal_states(saved_of(all), 1, 5, owner, *store));
  CHECK(values_at_seat(*store, 0) == std::vector<float>{2.0F, -2.0F, 8.0F, 1.0F});
}

TEST_CASE("a state of a worker that had no weights yet is left out of a mean") {
  const auto store = make_memory_store();
  StateOfWorker fresh = made_state(2, 100.0F);
  fresh.head.set_weights(0);
  fresh.values = {0.0F, 0.0F};
  const auto states = saved_of({made_state(0, 1.0F), made_state(1, 3.0F), fresh});
  REQUIRE(deal_states(states, 1, 5, kStateOwner, *store));
  CHECK(values_at_seat(*store, 0) == std::vector<float>{2.0F, -2.0F, 4.0F, 0.5F});
}

TEST_CASE("a stage without a codec still has what the codec of the stage before has left out") {
  const UpdateSpec plain{.kind = UpdateKind::kGradientOnly};
  UpdateSpec coded = plain;
  coded.codec.kind = CodecKind::kOneBit;
  const UpdateSpec delta{.kind = UpdateKind::kFullDelta};
  const UpdateSpec elastic{.kind = UpdateKind::kElastic};
  CHECK(may_hold_residual({coded, plain, plain}, 2));
  CHECK(may_hold_residual({plain, coded}, 1));
  // The stages come again.
  CHECK(may_hold_residual({plain, coded}, 0));
  CHECK_FALSE(may_hold_residual({plain, coded, delta}, 0));
  CHECK_FALSE(may_hold_residual({coded, delta}, 1));
  CHECK_FALSE(may_hold_residual({coded, delta, plain}, 2));
  CHECK_FALSE(may_hold_residual({coded, elastic}, 1));
}

TEST_CASE("a stage without use for a worker's histories may still have them for one after it") {
  const UpdateSpec full{}, gradients{.kind = UpdateKind::kGradientOnly};
  const UpdateSpec elastic{.kind = UpdateKind::kElastic};
  const UpdateSpec averaged{.updater = UpdaterState::kAverage};
  const UpdateSpec reset{.updater = UpdaterState::kReset};
  CHECK(may_hold_histories({full}, 0));
  CHECK(may_hold_histories({elastic}, 0));
  CHECK_FALSE(may_hold_histories({gradients}, 0));
  CHECK_FALSE(may_hold_histories({averaged, gradients}, 0));
  CHECK(may_hold_histories({full, gradients, full}, 1));
  CHECK(may_hold_histories({averaged, gradients, full}, 0));
  // The stages come again.
  CHECK(may_hold_histories({full, gradients}, 1));
  CHECK_FALSE(may_hold_histories({gradients, averaged, full}, 0));
  CHECK_FALSE(may_hold_histories({gradients, reset, full}, 0));
  CHECK(may_hold_histories({gradients, reset, full}, 1));
}

TEST_CASE("what a worker has alone in a stage counts histories for stages after it") {
  caffe::SolverParameter solver;
  solver.set_type("Adam");
  solver.set_base_lr(0.1F);
  solver.set_lr_policy("fixed");
  UpdateSpec averaged{.updater = UpdaterState::kAverage};
  averaged.codec.kind = CodecKind::kBf16;
  const UpdateSpec gradients{.kind = UpdateKind::kGradientOnly};
  CHECK(arrays_in_stage({UpdateSpec{}, gradients}, 1, solver).value() == 2);
  CHECK(arrays_in_stage({averaged, UpdateSpec{}}, 0, solver).value() == kStateArraysMax);
  CHECK(arrays_before_run(gradients, solver).value() == 0);
}

TEST_CASE("what store or file has not of workers is said of a job that has any, and bits") {
  CHECK(lost_without_states(WithoutStates::kStore, 0, true).empty());
  const std::string plain = lost_without_states(WithoutStates::kStore, 2, false);
  CHECK(plain.find("those that waited for this master keep theirs") != std::string::npos);
  CHECK(plain.find("bits") == std::string::npos);
  const std::string of_file = lost_without_states(WithoutStates::kFile, 2, false);
  CHECK(of_file.find("written without --snapshot-workers") != std::string::npos);
  for (const auto what : {WithoutStates::kStore, WithoutStates::kFile}) {
    CHECK(lost_without_states(what, 2, true).find("(--deterministic)") != std::string::npos);
  }
}

TEST_CASE("states of another net, solver or schedule are refused, and the remedy is named") {
  const StateOfWorker state = made_state(1, 1.0F);
  REQUIRE(check_owner(state.head, kStateOwner));
  StateOwner other = kStateOwner;
  other.model = {3, 5};
  CHECK(owner_refusal(state, other).find("of model") != std::string::npos);
  other = kStateOwner;
  other.solver_type = "AdaDelta";
  CHECK(owner_refusal(state, other).find("\"AdaDelta\"") != std::string::npos);
  other = kStateOwner;
  other.stages = {UpdateSpec{}};
  CHECK(owner_refusal(state, other).find("contributes something else") != std::string::npos);
  StateOfWorker later = state;
  later.head.set_stage(1);
  CHECK(owner_refusal(later, kStateOwner).find("does not have") != std::string::npos);
}

TEST_CASE("a state in the store is refused by a worker of another net, and missing is not found") {
  const auto store = make_memory_store();
  REQUIRE(put_state(*store, state_key(2, 1), made_state(1, 1.0F)));
  const auto other = get_state(*store, state_key(2, 1), {9, 9}, kStateArena);
  REQUIRE_FALSE(other);
  CHECK(other.error().code == ErrorCode::kMismatch);
  const auto missing = get_state(*store, state_key(2, 2), kStateModel, kStateArena);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
}

}  // namespace speedo
