// The model of grouping. How speeds are cut into groups is tested by itself, against all cuts there
// are (speed_clusters_test.cpp); here it is taken as given.

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "strategies/speed_clusters.hpp"

#include "models.hpp"

namespace speedo {

namespace {

struct Crew {
  Ids members, awaited, reported;
};

struct Pace {
  int reports = 0;
  double samples = 0.0, time = 0.0, speed = 0.0;
  bool placed = false, founder = false;
  bool settled() const { return speed > 0.0 || reports >= 3; }
};

class GroupingModel {
 public:
  explicit GroupingModel(const StrategyOptions& options) : options_(options) {}

  std::string on(const Event& event) {
    text_.clear();
    if (const auto* e = std::get_if<Joined>(&event)) join(*e);
    if (const auto* e = std::get_if<Left>(&event)) leave(e->worker.value);
    if (const auto* e = std::get_if<Failed>(&event)) report(e->worker.value, 0.0, 0.0);
    if (const auto* e = std::get_if<Trained>(&event)) {
      crews_.at(home_.at(e->worker.value)).reported.insert(e->worker.value);
      report(e->worker.value, static_cast<double>(e->samples),
             static_cast<double>(e->duration_us));
    }
    return text_;
  }

 private:
  void join(const Joined& event) {
    const bool first = paces_.empty() && !begun_;
    begun_ = true;
    std::map<int, Ids> going;
    for (std::size_t i = 0; i < event.workers.size(); ++i) {
      const std::uint64_t worker = event.workers[i].value;
      paces_[worker].founder = first;
      goal_[worker] = listed_crew(event.names[i]);
    }
    plan();
    for (const WorkerId worker : event.workers) going[goal_.at(worker.value)].insert(worker.value);
    arrive(going);
  }

  void leave(std::uint64_t worker) {
    const int crew = home_.at(worker);
    paces_.erase(worker);
    goal_.erase(worker);
    home_.erase(worker);
    plan();
    crews_.at(crew).members.erase(worker);
    crews_.at(crew).awaited.erase(worker);
    finish(crew);
  }

  void report(std::uint64_t worker, double samples, double time) {
    Pace& pace = paces_.at(worker);
    pace.reports += 1;
    if (pace.reports > 1) {
      pace.samples += samples;
      pace.time += time;
    }
    if (pace.speed == 0.0 && pace.reports >= 3 && pace.time > 0.0) {
      pace.speed = pace.samples / pace.time;
    }
    heard_ += 1;
    plan();
    crews_.at(home_.at(worker)).awaited.erase(worker);
    finish(home_.at(worker));
  }

  // A round that nobody is awaited in any more: its mean, and everybody to where it belongs.
  void finish(int crew) {
    Crew& round = crews_.at(crew);
    if (!round.awaited.empty()) return;
    if (!round.reported.empty()) {
      say("average");
      for (const std::uint64_t worker : round.reported) text_ += ' ' + std::to_string(worker);
      round.reported.clear();
    }
    std::map<int, Ids> going;
    for (const std::uint64_t worker : Ids(round.members)) {
      going[goal_.at(worker)].insert(worker);
      round.members.erase(worker);
    }
    arrive(going);
  }

  void arrive(const std::map<int, Ids>& going) {
    for (const auto& [crew, workers] : going) {
      Crew& target = crews_[crew];
      target.members.insert(workers.begin(), workers.end());
      for (const std::uint64_t worker : workers) home_[worker] = crew;
      if (!target.awaited.empty()) continue;
      target.awaited = target.members;
      for (const std::uint64_t worker : target.members) say("train " + std::to_string(worker));
    }
  }

  int listed_crew(const std::string& name) {
    for (const bool whole : {true, false}) {
      const std::string wanted = whole ? name : name.substr(0, name.find('/'));
      for (std::size_t i = 0; i < options_.groups.size(); ++i) {
        for (const std::string& each : options_.groups[i]) {
          if (each == wanted) return static_cast<int>(i);
        }
      }
    }
    return fresh_++;
  }

  // Whether everybody should work with others than now, and then with whom.
  void plan() {
    if (!options_.groups.empty()) return;
    bool somebody_new = false;
    for (const auto& [worker, pace] : paces_) {
      if (!grouped_ && pace.founder && !pace.settled()) return;
      somebody_new = somebody_new || (pace.settled() && !pace.placed);
    }
    const bool again = options_.regroup_interval > 0 && heard_ >= options_.regroup_interval;
    if (!somebody_new && !again) return;
    grouped_ = true;
    std::map<WorkerId, double> speeds;
    for (auto& [worker, pace] : paces_) {
      if (again && pace.time > 0.0) {
        pace.speed = pace.samples / pace.time;
        pace.samples = pace.time = 0.0;
      }
      pace.placed = pace.placed || pace.settled();
      if (pace.speed > 0.0) speeds[{worker}] = pace.speed;
    }
    if (again) heard_ = 0;
    const auto before = goal_;
    for (const auto& cluster : cluster_speeds(speeds, options_.group_count)) {
      Ids together, now;
      for (const WorkerId worker : cluster) together.insert(worker.value);
      for (const auto& [worker, crew] : before) {
        if (crew == before.at(*together.begin())) now.insert(worker);
      }
      if (now == together) continue;
      for (const std::uint64_t worker : together) goal_[worker] = fresh_;
      fresh_ += 1;
    }
  }

  void say(const std::string& command) { text_ += (text_.empty() ? "" : ", ") + command; }

  StrategyOptions options_;
  std::map<int, Crew> crews_;
  std::map<std::uint64_t, int> home_, goal_;
  std::map<std::uint64_t, Pace> paces_;
  int fresh_ = 1000;
  std::uint64_t heard_ = 0;
  bool begun_ = false, grouped_ = false;
  std::string text_;
};

}  // namespace

Model grouping_model(const StrategyOptions& options) {
  const auto model = std::make_shared<GroupingModel>(options);
  return [model](const Event& event) { return model->on(event); };
}

}  // namespace speedo
