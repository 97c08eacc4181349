#include "models.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

// The parts of an event that matter to most models.
struct Seen {
  std::vector<std::uint64_t> newcomers;
  bool death = false, report = false, result = false;
  std::uint64_t worker = 0;
};

Seen seen(const Event& event) {
  Seen what;
  if (const auto* e = std::get_if<Joined>(&event)) {
    for (const WorkerId worker : e->workers) what.newcomers.push_back(worker.value);
  } else if (const auto* left = std::get_if<Left>(&event)) {
    what.death = true;
    what.worker = left->worker.value;
  } else if (const auto* failed = std::get_if<Failed>(&event)) {
    what.report = true;
    what.worker = failed->worker.value;
  } else {
    what.report = what.result = true;
    what.worker = std::get<Trained>(event).worker.value;
  }
  return what;
}

class Answer {
 public:
  void add(const std::string& verb, std::uint64_t worker) {
    say(verb + ' ' + std::to_string(worker));
  }
  void average(const Ids& workers) {
    if (workers.empty()) return;
    std::string text = "average";
    for (const std::uint64_t worker : workers) text += ' ' + std::to_string(worker);
    say(text);
  }
  const std::string& text() const { return text_; }

 private:
  void say(const std::string& command) { text_ += (text_.empty() ? "" : ", ") + command; }
  std::string text_;
};

struct Row {
  std::uint64_t worker;
  std::uint64_t runs;
  bool idle, owes;
};
using Rows = std::vector<Row>;

Row& row_of(Rows& rows, std::uint64_t worker) {
  const auto row = std::ranges::find(rows, worker, &Row::worker);
  SPEEDO_ASSERT(row != rows.end());
  return *row;
}
std::uint64_t most(const Rows& rows) { return std::ranges::max(rows, {}, &Row::runs).runs; }
std::uint64_t least(const Rows& rows) { return std::ranges::min(rows, {}, &Row::runs).runs; }

}  // namespace

Model async_model() {
  return [](const Event& event) {
    const Seen what = seen(event);
    Answer answer;
    for (const std::uint64_t worker : what.newcomers) answer.add("train", worker);
    if (what.result) answer.add("merge", what.worker);
    if (what.report) answer.add("train", what.worker);
    return answer.text();
  };
}

Model sync_model() {
  return [alive = Ids(), running = Ids(), reported = Ids()](const Event& event) mutable {
    const Seen what = seen(event);
    alive.insert(what.newcomers.begin(), what.newcomers.end());
    if (what.death) alive.erase(what.worker);
    if (what.death || what.report) running.erase(what.worker);
    if (what.result) reported.insert(what.worker);
    Answer answer;
    if (!running.empty()) return answer.text();
    answer.average(reported);
    reported.clear();
    running = alive;
    for (const std::uint64_t worker : alive) answer.add("train", worker);
    return answer.text();
  };
}

Model exact_sync_model(std::uint64_t exact) {
  // `ended`: runs of the round; `used`: who had one of them.
  return [exact, ended = exact, alive = Ids(), running = Ids(), used = Ids(),
          reported = Ids()](const Event& event) mutable {
    const Seen what = seen(event);
    alive.insert(what.newcomers.begin(), what.newcomers.end());
    if (what.death) alive.erase(what.worker);
    if (what.death || what.report) running.erase(what.worker);
    if (what.report) ended += 1;
    if (what.result) reported.insert(what.worker);
    Answer answer;
    if (ended == exact) {
      answer.average(reported);
      reported.clear();
      if (alive.size() < exact) return answer.text();
      ended = 0;
      used.clear();
    }
    for (const std::uint64_t worker : alive) {
      if (ended + running.size() == exact) break;
      if (!used.insert(worker).second) continue;
      running.insert(worker);
      answer.add("train", worker);
    }
    return answer.text();
  };
}

Model partial_sync_model(std::uint64_t max_advance) {
  return [rows = Rows(), catch_up = false, max_advance](const Event& event) mutable {
    const Seen what = seen(event);
    Answer answer;
    const std::uint64_t top = rows.empty() ? 1 : most(rows);
    for (const std::uint64_t worker : what.newcomers) {
      rows.push_back({worker, top, false, false});
      if (!catch_up) answer.add("train", worker);
    }
    if (what.result) answer.add("merge", what.worker);
    if (what.death) std::erase_if(rows, [&](const Row& row) { return row.worker == what.worker; });
    if (what.report && catch_up) row_of(rows, what.worker).owes = false;
    if (what.report && !catch_up) {
      row_of(rows, what.worker).runs += 1;
      catch_up = most(rows) - least(rows) >= max_advance;
      if (!catch_up) answer.add("train", what.worker);
      for (Row& row : rows) row.owes = catch_up && row.worker != what.worker;
    }
    if (catch_up && std::ranges::none_of(rows, &Row::owes)) {
      catch_up = false;
      for (Row& row : rows) {
        row.runs = 1;
        answer.add("train", row.worker);
      }
    }
    return answer.text();
  };
}

Model ssp_model(std::uint64_t staleness) {
  return [rows = Rows(), staleness](const Event& event) mutable {
    const Seen what = seen(event);
    Answer answer;
    std::uint64_t clock = 0;
    if (!rows.empty()) {
      clock = most(rows);
      while (clock > least(rows) + staleness) --clock;
    }
    for (const std::uint64_t worker : what.newcomers) rows.push_back({worker, clock, true, false});
    if (what.result) answer.add("merge", what.worker);
    if (what.death) std::erase_if(rows, [&](const Row& row) { return row.worker == what.worker; });
    if (what.report) {
      row_of(rows, what.worker).runs += 1;
      row_of(rows, what.worker).idle = true;
    }
    for (Row& row : rows) {
      if (!row.idle || row.runs > least(rows) + staleness) continue;
      row.idle = false;
      answer.add("train", row.worker);
    }
    return answer.text();
  };
}

Model weedout_model(std::uint64_t window) {
  // The ring as SpeeDO has it: a queue, oldest first, and how long it may be.
  return [ring = std::deque<std::uint64_t>(), size = std::uint64_t{0}, window,
          begun = false](const Event& event) mutable {
    const Seen what = seen(event);
    Answer answer;
    if (!begun) size = std::max<std::uint64_t>(window, what.newcomers.size());
    for (const std::uint64_t worker : what.newcomers) {
      if (begun) {
        ring.push_front(worker);
        size += 1;
      }
      answer.add("train", worker);
    }
    begun = true;
    if (what.death) {
      if (!ring.empty()) ring.pop_front();
      size -= 1;
    }
    if (what.report) {
      const bool known = std::ranges::find(ring, what.worker) != ring.end();
      const bool full = ring.size() == size;
      if (what.result) answer.add(known || !full ? "merge" : "discard", what.worker);
      if (full) ring.pop_front();
      ring.push_back(what.worker);
      answer.add("train", what.worker);
    }
    return answer.text();
  };
}

Model model_of(const StrategyOptions& options) {
  const std::string name = find_strategy(options.name)->name;
  if (name == "partial-sync") return partial_sync_model(options.max_advance);
  if (name == "ssp") return ssp_model(options.staleness);
  if (name == "weedout") return weedout_model(options.window);
  if (name == "grouping") return grouping_model(options);
  if (find_strategy(name)->rounds) {
    return options.exact_workers == 0 ? sync_model() : exact_sync_model(options.exact_workers);
  }
  return async_model();
}

}  // namespace speedo
