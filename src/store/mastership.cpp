#include "store/mastership.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "base/parse_number.hpp"

namespace speedo {
namespace {

constexpr std::size_t kTermDigits = 20;
constexpr std::array<std::string_view, 5> kWords = {"done", "held", "higher", "corrupt", "later"};

std::optional<std::uint64_t> decode_term(std::string_view text) {
  if (text.size() != kTermDigits) return std::nullopt;
  return parse_number<std::uint64_t>(text);
}

// The holder that a lease names.
std::string_view holder_of(std::string_view lease) {
  return lease.size() > kTermDigits ? lease.substr(kTermDigits + 1) : std::string_view();
}

// A lease from before the stored term, whose holder was replaced by who raised that: a store that
// went back, or was emptied, may have one when the newer master writes.
bool is_outdated(const MasterRecord& stored) {
  return !stored.lease.empty() && stored.lease.substr(0, kTermDigits) < stored.term;
}

MasterAnswer held(std::uint64_t term, const MasterRecord& stored) {
  return {MasterAnswer::Kind::kHeld, term, stored.left, std::string(holder_of(stored.lease))};
}

// Names who has the higher term, if that is known.
MasterAnswer higher(std::uint64_t term, const MasterRecord& stored) {
  const std::string_view holder = is_outdated(stored) ? "" : holder_of(stored.lease);
  return {MasterAnswer::Kind::kHigher, term, stored.left, std::string(holder)};
}

// The text up to the next space, which is taken off.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

KvPtr master_operation(KvOperation::Kind kind, const std::string& job, const MasterClaim& claim) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = kind;
  operation->master.emplace();
  KvMaster& master = *operation->master;
  master.term_key = term_key(job);
  master.lease_key = lease_key(job);
  master.term = claim.term;
  master.holder = claim.holder;
  master.is_new = claim.term == 0;
  master.force = claim.force;
  master.dead_holder = claim.dead_holder;
  master.time = claim.time;
  return operation;
}

Error bad_term(const std::string& job, const KvMaster& master) {
  std::string what = "'" + master.term_key + "' in the store is no term: remove that key";
  if (!master.writer_key.empty()) {
    what = "'" + master.term_key + "' or '" + master.writer_key +
           "' in the store is damaged: remove both keys";
  }
  return Error{ErrorCode::kCorrupt, "job '" + job + "': what lies under " + what};
}

// A holder's first word is its name for people.
Error superseded(const std::string& job, const std::string& what, const MasterAnswer& answer) {
  if (answer.kind == MasterAnswer::Kind::kLater) {
    return Error{ErrorCode::kSuperseded,
                 what + " of job '" + job +
                     "': a later writer of it has taken over from this one, which has written "
                     "nothing more"};
  }
  const std::string name = answer.holder.substr(0, answer.holder.find(' '));
  const std::string by = name.empty() ? "another master" : "the master " + name;
  return Error{ErrorCode::kSuperseded,
               what + " of job '" + job + "': " + by +
                   " has taken over from this one; nothing more was written; stop this one, or "
                   "take the job back with --take-over"};
}

}  // namespace

std::string term_key(std::string_view job) { return "speedo:{" + std::string(job) + "}/term"; }
std::string lease_key(std::string_view job) { return "speedo:{" + std::string(job) + "}/lease"; }

std::string encode_term(std::uint64_t term) {
  const std::string digits = std::to_string(term);
  return std::string(kTermDigits - digits.size(), '0') + digits;
}

std::string encode_lease(std::uint64_t term, std::string_view holder) {
  return encode_term(term) + ' ' + std::string(holder);
}

std::string encode_writer(const KvMaster& master) {
  return encode_term(master.term) + encode_term(master.writer);
}

MasterAnswer judge_write(const KvMaster& master, const MasterRecord& stored) {
  const auto term = stored.term.empty() ? std::uint64_t{0} : decode_term(stored.term);
  if (!term) return {MasterAnswer::Kind::kCorrupt, 0, {}, {}};
  if (*term > master.term) return higher(*term, stored);
  if (master.writer_key.empty() || stored.writer.empty()) return {};
  const std::string_view writer = stored.writer;
  const std::string_view of_term = writer.substr(0, std::min(kTermDigits, writer.size()));
  if (!decode_term(of_term) || !decode_term(writer.substr(of_term.size()))) {
    return {MasterAnswer::Kind::kCorrupt, 0, {}, {}};
  }
  if (writer > encode_writer(master)) return {MasterAnswer::Kind::kLater, 0, {}, {}};
  return {};
}

MasterAnswer judge_claim(const KvMaster& master, const MasterRecord& stored) {
  const auto term = stored.term.empty() ? std::uint64_t{0} : decode_term(stored.term);
  if (!term) return {MasterAnswer::Kind::kCorrupt, 0, {}, {}};
  const std::string_view holder = holder_of(stored.lease);
  const bool nobody = stored.lease.empty();
  const bool mine = !nobody && holder == master.holder;
  const bool open = nobody || mine || master.force || holder == master.dead_holder;
  if (master.is_new && !open) return held(*term, stored);
  const bool may_have_it = mine || ((nobody || is_outdated(stored)) && !master.is_new);
  if (*term > master.term || (*term == master.term && !may_have_it)) {
    return higher(*term, stored);
  }
  return {};
}

std::string encode_answer(const MasterAnswer& answer) {
  std::string text(kWords[static_cast<std::size_t>(answer.kind)]);
  const bool with_record =
      answer.kind == MasterAnswer::Kind::kHeld || answer.kind == MasterAnswer::Kind::kHigher;
  if (!with_record) return text;
  return text + ' ' + encode_term(answer.term) + ' ' + std::to_string(answer.left.count()) + ' ' +
         answer.holder;
}

Result<MasterAnswer> decode_answer(std::string_view text) {
  const Error bad{ErrorCode::kInternal,
                  "the store answered a master's request with '" + std::string(text) + "'"};
  std::string_view rest = text;
  const auto* const word = std::find(kWords.begin(), kWords.end(), take_word(rest));
  if (word == kWords.end()) return bad;
  MasterAnswer answer;
  answer.kind = static_cast<MasterAnswer::Kind>(word - kWords.begin());
  const bool with_record =
      answer.kind == MasterAnswer::Kind::kHeld || answer.kind == MasterAnswer::Kind::kHigher;
  if (!with_record) return text == *word ? Result<MasterAnswer>(answer) : bad;
  const auto term = decode_term(take_word(rest));
  const auto left = parse_number<std::int64_t>(take_word(rest));
  if (!term || !left) return bad;
  answer.term = *term;
  // Redis says -2 for a lease that is not there.
  answer.left = std::chrono::milliseconds(std::max<std::int64_t>(0, *left));
  answer.holder = rest;
  return answer;
}

bool took_effect(const KvOperation& operation) {
  if (operation.error) return false;
  if (!operation.master) return true;
  const auto answer = decode_answer(operation.text);
  return answer && answer->kind == MasterAnswer::Kind::kDone;
}

Result<void> execute_as_master(KeyValue& map, const std::string& job, const std::string& what,
                               const KvPtr& operation) {
  SPEEDO_TRY(execute(map, operation));
  SPEEDO_ASSIGN(const MasterAnswer answer, decode_answer(operation->text));
  if (answer.kind == MasterAnswer::Kind::kDone) return {};
  if (answer.kind == MasterAnswer::Kind::kCorrupt) return bad_term(job, *operation->master);
  return superseded(job, what, answer);
}

// A new term is proposed and not made by the store, so that a claim that is repeated because its
// answer was lost meets its own grant.
Result<ClaimAnswer> claim_job(KeyValue& map, const std::string& job, const MasterClaim& claim) {
  SPEEDO_ASSERT(!claim.holder.empty());
  SPEEDO_ASSERT(claim.time.count() > 0);
  std::uint64_t term = claim.term;
  if (term == 0) term = std::max<std::uint64_t>(1, claim.term_floor);
  for (int attempt = 0; attempt < kStoreAttemptsMax; ++attempt) {
    const KvPtr operation = master_operation(KvOperation::Kind::kClaim, job, claim);
    operation->master->term = term;
    SPEEDO_TRY(execute(map, operation));
    SPEEDO_ASSIGN(MasterAnswer answer, decode_answer(operation->text));
    if (answer.kind == MasterAnswer::Kind::kDone) return ClaimAnswer{true, term, "", {}};
    if (answer.kind == MasterAnswer::Kind::kCorrupt) return bad_term(job, *operation->master);
    if (answer.kind == MasterAnswer::Kind::kHeld) {
      return ClaimAnswer{false, answer.term, std::move(answer.holder), answer.left};
    }
    if (claim.term != 0) return superseded(job, "mastership", answer);
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - answer.term;
    if (room == 0) return bad_term(job, *operation->master);
    // Further ahead each time, so that two who claim in turn do not outbid each other for ever.
    term = answer.term + std::min(room, kTermStride << static_cast<unsigned>(attempt));
  }
  return Error{ErrorCode::kUnavailable,
               "others claim job '" + job + "' faster than this master: stop them"};
}

Result<void> release_job(KeyValue& map, const std::string& job, const MasterClaim& claim) {
  return execute_as_master(map, job, "mastership",
                           master_operation(KvOperation::Kind::kRelease, job, claim));
}

}  // namespace speedo
