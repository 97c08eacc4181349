// The real sessions, strategies, merger and store, through hundreds of simulated disasters.

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/long_runs.hpp"
#include "support/random_seed.hpp"

#include "proof_support.hpp"

namespace speedo::sim {
namespace {

#ifdef SPEEDO_SANITIZED
constexpr std::uint64_t kSeedsEach = 10, kFreshSeeds = 10;
#else
// The kept seeds of a schedule are the same in every run; fresh ones are where news comes from.
const std::uint64_t kSeedsEach = test::is_long() ? 200 : 10;
const std::uint64_t kFreshSeeds = test::is_long() ? 1000 : 60;
#endif
constexpr std::uint64_t kRepeatEvery = 4;

}  // namespace

TEST_CASE("every schedule keeps its promises under faults, and reaches its end") {
  FaultTable faults{};
  MergeCounts merges;
  for (const std::string& name : scenario_names()) {
    Campaign campaign;
    campaign.names = {name};
    campaign.last_seed = kSeedsEach;
    campaign.repeat_every = kRepeatEvery;
    campaign.threads = 2;
    const CampaignResult result = run_campaign(campaign, real_parts());
    CHECK(result.seeds == kSeedsEach);
    CHECK(result.merges.all > kSeedsEach);
    add(result.faults, faults);
    merges += result.merges;
    for (const CampaignFinding& found : result.violations) {
      FAIL_CHECK(name << ", seed " << found.scenario.seed << ": " << found.result.violation);
    }
  }
  CHECK(merges.ahead > 0);
  CHECK(merges.in_memory > 0);
  CHECK(merges.coded > 0);
  CHECK(merges.by_shards > merges.in_parts);
  CHECK(merges.put_off > 0);
  CHECK(merges.unseen < merges.in_parts / 100);
  for (const FaultKind kind : idle_kinds(faults)) {
    FAIL_CHECK(describe_idle(kind, faults[static_cast<std::size_t>(kind)]));
  }
  for (int i = 0; i < kFaultKinds; ++i) {
    const FaultCount& count = faults[static_cast<std::size_t>(i)];
    INFO(to_string(static_cast<FaultKind>(i)) << ": drawn " << count.drawn << ", struck "
                                              << count.strikes << ", felt " << count.effects);
    CHECK(count.effects <= count.strikes);
    CHECK(count.strikes <= count.drawn);
  }
}

TEST_CASE("seeds that once did not hold, or were judged wrongly, do") {
  // The store goes back a second; weights of after that have no histories there when their master
  // dies; the store loses all while a new master reads what it goes on from; it goes back to
  // weights of an earlier stage, of another size; a master goes on from files whose weights are
  // still those of the start, or from files with histories of parts; the copies of a lost part
  // cannot be read for a moment; a worker of a replaced master reads weights of a later stage; the
  // parts' record is lost between two reads; a server comes back with an older manifest; states of
  // an earlier snapshot are erased while a worker puts those of the last; workers go after the end,
  // before their states are asked for; what a threshold has held back comes at once with another
  // codec; a replaced master opens a part between two looks at its lease; a part is lost for good
  // while a rival waits, and its manifest is put back before the master ends; a merge fails for
  // want of an answer, and what it has published after all is taken back; a merge ahead waits
  // for a worker that waits for the weights which shared memory alone has; what workers left is
  // erased although the merger waits for a server of its own; the store loses all while parts are
  // opened for the next stage; a master dies at the manifest of its first stage; a silent merger
  // puts its part back when the master has given it up; a merge is made anew after an answer was
  // lost; a master goes on from a version that nobody could read, and from what was merged ahead
  // of a contribution that was damaged later; a part's merger is ready after its successor; a part
  // that was lost is back, of an earlier state, before its master ends; a later decision overtakes
  // the one that a part's merger waits for; a master that was stopped puts its weights back where
  // the claim of the next one is lost; a master that gave its store up waits for workers' states; a
  // version of the weights that was taken back is there again when the store has lost a second; a
  // part is back as it was tried before, under the number of the version that counts; a manifest
  // comes after its chunks were lost, and its master stands still until the next one reads it; of a
  // new master, which has died, the server with the copies alone still knows; a part has lost its
  // histories in a stage that does not use them; the store loses the copy of a part, which is on
  // its way to the master; the answer to the manifest of a part that was opened anew is lost, and
  // what it was opened from is lost as well; chunks that were lost before their manifest came
  // cannot be put again, and the version before takes its place; a part's merger is stopped while
  // it copies, and goes on when its successor has copies of newer weights; a master has read what
  // another one never knew that it had published, and the store loses it before it begins; a master
  // is cut off as it takes leave, by a fault that was drawn before; a run that is short costs its
  // one worker the requests to four servers; a worker comes back as another one and offers its
  // memory anew, while its group waits for what lies there; a contribution's chunks are lost before
  // its manifest comes, and put again behind it; a worker is told twice to save its state; a part's
  // merger that stood still ends its checkpoint after its successor has begun one; of a part that
  // was opened anew the copy alone is left; a snapshot has weights that nobody else could read; a
  // master has waited while another one numbered its runs; parts keep their histories through a
  // master's end in a stage that does not use them; a stage's weights are lost before anybody sees
  // them; a replica's last merge fails and is in the store after all; a part's merger of one master
  // ends when another one has welcomed it; a master is still at work when another one has ended;
  // a part is opened anew on a server that came back with the version before; the answer to a
  // manifest is lost, and afterwards that to the refused one of an earlier master; a run that is
  // not finite is reported after training has ended; another master has seen a merge that its own
  // makes anew, without what the store has lost since; a master is stopped while it waits to hear
  // whether it still has its lease, and asks again; a master whose clock is behind begins anew what
  // one of a term just below its own has trained; a master goes on from a file whose weights no
  // codec has let a change through to, with what was merged; weights that are not known yet are
  // those of an older version, as a codec has them go round; a merge that came to nothing has left,
  // for a worker that is gone, a chunk without manifest; a master has nothing left to train, and
  // nobody can read what it has put; a chunk is lost before the manifest of its version comes, and
  // the master dies before it puts it again; training ends just after a stage without rounds has
  // begun; a master that is cut off as it takes leave is followed by the end of one before it; one
  // that is cut off as it begins goes on when its successor has put its weights.
  for (const std::uint64_t seed : std::initializer_list<std::uint64_t>{
           2496790015U, 3364U, 8736U, 871U, 694438938444458392U, 100426U, 101173U, 102833U,
           102464U, 300030U, 500169U, 502758U, 500522U, 502048U, 701115U, 704890U, 705095U,
           700085U, 804425U, 804215U, 3001537U, 4003186U, 4003551U, 4005972U, 5001761U,
           4011385U, 6005447U, 6005164U, 6012929U, 7003116U, 8003966U, 9025090U, 9038101U,
           9035888U, 9034184U, 9017085U, 9216408U, 9221319U, 9232824U, 9205046U, 9212078U,
           9207271U, 9225812U, 9215291U, 9257563U, 9259632U, 9355175U, 9356702U, 9336670U,
           9356454U, 9403588U, 21151566904995712U, 9520828U, 9524375U, 10108690U, 10127324U,
           10138725U, 10142970U, 10206546U, 10407386U, 10413703U, 36072303U, 38000637U,
           38009276U, 38011786U, 39005893U, 40028497U, 41069857U, 44012689U,
           45020463U, 46000473U, 47000921U, 47011154U,
           48089263U, 51063913U}) {
    CHECK(run_proof(draw_scenario(seed, scenario_names(), {2, 64}), real_parts()).violation == "");
  }
}

TEST_CASE("seeds that nobody has tried hold as well") {
  Campaign campaign;
  campaign.names = scenario_names();
  campaign.first_seed = test::fresh_seed();
  campaign.last_seed = campaign.first_seed + kFreshSeeds - 1;
  campaign.repeat_every = kRepeatEvery;
  campaign.threads = 2;
  const CampaignResult result = run_campaign(campaign, real_parts());
  CHECK(result.seeds == kFreshSeeds);
  for (const CampaignFinding& found : result.violations) {
    FAIL_CHECK(found.scenario.strategy << ": speedo simulate --replay " << found.scenario.seed
                                       << ": " << found.result.violation);
  }
}

TEST_CASE("a seed gives the same run again, line by line, and another seed another one") {
  const auto trace_of = [](std::uint64_t seed) {
    std::vector<std::string> lines;
    ProofParts parts = real_parts();
    parts.trace = [&](const std::string& line) { lines.push_back(line); };
    const ProofResult result = run_proof(draw_scenario(seed, {"ssp"}, {2, 8}), parts);
    CHECK(result.violation.empty());
    return lines;
  };
  const auto first = trace_of(7);
  CHECK(first.size() > 1000);
  CHECK(first == trace_of(7));
  CHECK(first != trace_of(8));
}

TEST_CASE("the hash of a run tells runs apart and does not depend on who traces") {
  const Scenario scenario = draw_scenario(3, {"sync"}, {2, 8});
  ProofParts traced = real_parts();
  std::uint64_t lines = 0;
  traced.trace = [&](const std::string&) { lines += 1; };
  const ProofResult first = run_proof(scenario, traced), second = run_proof(scenario, real_parts());
  CHECK(lines > first.events);
  CHECK(first.hash == second.hash);
  CHECK(first.events == second.events);
  CHECK(run_proof(draw_scenario(4, {"sync"}, {2, 8}), real_parts()).hash != first.hash);
}

TEST_CASE("a campaign finds the same on one thread and on several") {
  Campaign campaign;
  campaign.names = {"async", "weedout"};
  campaign.workers = {2, 6};
  campaign.last_seed = 12;
  const CampaignResult one = run_campaign(campaign, real_parts());
  campaign.threads = 3;
  const CampaignResult several = run_campaign(campaign, real_parts());
  CHECK(one.seeds == 12);
  CHECK(one.events == several.events);
  CHECK(one.merges.all == several.merges.all);
}

TEST_CASE("a campaign simulates each so many-th seed twice") {
  const auto events_of = [](std::uint64_t last_seed, std::uint64_t repeat_every) {
    Campaign campaign;
    campaign.names = {"async"};
    campaign.workers = {2, 4};
    campaign.last_seed = last_seed;
    campaign.repeat_every = repeat_every;
    return run_campaign(campaign, real_parts()).events;
  };
  const std::uint64_t of_one = events_of(1, 0), of_two = events_of(2, 0);
  CHECK(of_one > 0);
  CHECK(events_of(2, 1) == 2 * of_two);
  CHECK(events_of(2, 2) == 2 * of_two - of_one);
}

TEST_CASE("a campaign stops between seeds when it is asked to") {
  Campaign campaign;
  campaign.names = {"async"};
  campaign.last_seed = 1000;
  std::uint64_t done = 0;
  const CampaignResult result = run_campaign(
      campaign, real_parts(), [&](const CampaignResult& so_far) { done = so_far.seeds; },
      [&] { return done >= 3; });
  CHECK(result.seeds == 3);
}

}  // namespace speedo::sim
