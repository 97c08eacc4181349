// Tasks that are handed over together: the replies of one after the other, whatever the helper does
// or says in between.

#include <csignal>
#include <optional>
#include <thread>
#include <vector>

#include "sandbox/helper_message.hpp"
#include "sandbox/helper_support.hpp"
#include "support/child_processes.hpp"

namespace speedo::test {
namespace {

std::string reversed(const std::string& text) { return {text.rbegin(), text.rend()}; }

// What each reply came to, in the order of replies.
std::vector<std::string> all_of(HelperLoan& loan, const std::vector<HelperTask>& tasks) {
  std::vector<std::string> texts;
  loan.run_all(tasks, [&](std::size_t index, Result<HelperReply> reply) {
    CHECK(index == texts.size());
    texts.push_back(reply ? text_of(*reply) : reply.error().message);
  });
  return texts;
}

std::vector<std::string> each_of(HelperLoan& loan, const std::vector<HelperTask>& tasks) {
  std::vector<std::string> texts;
  for (const HelperTask& task : tasks) {
    const auto reply = loan.run(task);
    texts.push_back(reply ? text_of(*reply) : reply.error().message);
  }
  return texts;
}

TEST_CASE("places in a window lie one behind the other, and never outside") {
  std::vector<std::byte> window(1000);
  WindowPlaces places(window);
  for (const std::size_t begin : {0U, 64U, 128U}) {
    const auto place = places.take(begin == 0 ? 1 : 64);
    REQUIRE(place);
    CHECK(place->data() == window.data() + begin);
  }
  for (const std::uint64_t bytes : {std::uint64_t{809}, UINT64_MAX, UINT64_MAX - 63}) {
    CHECK_FALSE(places.take(bytes));
  }
  const auto last = places.take(807);
  REQUIRE(last);
  CHECK(last->data() + last->size() == window.data() + 999);
  CHECK(places.rest().empty());
  CHECK(places.take(0));
  CHECK_FALSE(places.take(1));
}

TEST_CASE("a group has no more tasks and bytes than it may, and files come alone") {
  const std::string half(kGroupInputBytes / 2, 'x'), whole(kGroupInputBytes + 1, 'x');
  const HelperTask empty = deed(Deed::kReverse), large = deed(Deed::kReverse, 0, half),
                   larger = deed(Deed::kReverse, 0, whole);
  HelperTask file = empty;
  file.file = 0;
  CHECK(group_size(std::vector(100, empty)) == kGroupTasksMax);
  CHECK(group_size(std::vector(3, empty)) == 3);
  CHECK(group_size(std::vector(3, large)) == 2);
  CHECK(group_size(std::vector(3, larger)) == 1);
  CHECK(group_size(std::vector{empty, larger}) == 1);
  CHECK(group_size(std::vector{file, empty}) == 1);
  CHECK(group_size(std::vector{empty, file}) == 1);
}

TEST_CASE("a group's replies are its tasks', in their order and apart from each other") {
  HelperStarter starter;
  const auto helper = started(starter);
  std::string large(70001, 'a');
  large.back() = 'z';
  const std::vector<std::string> inputs = {"abc", "", large, std::string(64, 'b'), "q"};
  std::vector<HelperTask> tasks;
  for (const std::string& input : inputs) {
    tasks.push_back(deed(Deed::kReverse, static_cast<std::int64_t>(input.size()), input));
  }
  const GroupOutcome outcome = helper->run_group(tasks);
  REQUIRE(outcome.replies.size() == tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Result<HelperReply>& reply = outcome.replies[i];
    REQUIRE(reply);
    CHECK(reply->numbers == tasks[i].numbers);
    CHECK(text_of(*reply) == reversed(inputs[i]));
  }
}

TEST_CASE("a group is answered as far as the window has room, the rest in others") {
  HelperStarter starter;
  const auto helper = started(starter);
  const auto window = static_cast<std::int64_t>(helper->window_bytes());
  const auto answered = [&](std::initializer_list<std::int64_t> sizes) {
    std::vector<HelperTask> tasks;
    for (const std::int64_t bytes : sizes) tasks.push_back(deed(Deed::kFill, bytes));
    const GroupOutcome outcome = helper->run_group(tasks);
    CHECK_FALSE(outcome.end);
    return outcome.replies.size();
  };
  CHECK(answered({1, 2, 3}) == 3);
  CHECK(answered({1, window - 64, 3}) == 2);
  CHECK(answered({1, window, 3}) == 1);
  CHECK(answered({window, 2}) == 1);
  CHECK(answered({window + 1, 2}) == 0);
  CHECK(answered({window + 1}) == 1);
  constexpr auto kMuch = static_cast<std::int64_t>(kGroupOutputBytes);
  CHECK(answered({kMuch / 2, kMuch / 2, 1, 1}) == 3);

  HelperPool pool(helper_options());
  HelperLoan loan = taken(pool);
  std::vector<HelperTask> tasks;
  for (const std::int64_t bytes : {window / 2, window / 2, window - 64, std::int64_t{5}, window + 1,
                                   window, std::int64_t{0}, std::int64_t{9}}) {
    tasks.push_back(deed(Deed::kFill, bytes));
  }
  const std::vector<std::string> expected = each_of(loan, tasks), found = all_of(loan, tasks);
  CHECK((found == expected));
  CHECK(found[3] == "fffff");
  CHECK(found[4].find("needs more memory") != std::string::npos);
  CHECK(pool.totals().died == 0);
}

TEST_CASE("inputs that a small window cannot hold together come one after the other") {
  HelperOptions small = helper_options();
  small.memory_bytes = std::uint64_t{1} << 20U;
  HelperPool pool(small);
  HelperLoan loan = taken(pool);
  const std::string input(150000, 'a'), huge(std::size_t{1} << 19U, 'b');
  std::vector<HelperTask> tasks(6, deed(Deed::kReverse, 0, input));
  tasks.push_back(deed(Deed::kReverse, 0, huge));
  const std::vector<std::string> found = all_of(loan, tasks);
  REQUIRE(found.size() == 7);
  for (std::size_t i = 0; i < 6; ++i) CHECK(found[i] == input);
  CHECK(found[6].find("more than a parser process takes") != std::string::npos);
  CHECK(pool.totals().died == 0);
}

TEST_CASE("a task that fails in a group has its own error, and the others their replies") {
  HelperPool pool(helper_options());
  HelperLoan loan = taken(pool);
  for (std::size_t bad = 0; bad < 4; ++bad) {
    std::vector<HelperTask> tasks(4, deed(Deed::kReverse));
    tasks[bad] = deed(Deed::kFail);
    const std::vector<std::string> found = all_of(loan, tasks);
    REQUIRE(found.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(found[i].starts_with("bad") == (i == bad));
  }
  CHECK(pool.totals().started == 1);
}

TEST_CASE("a task that kills costs itself alone, wherever in a group it is") {
  const std::string inputs[] = {"ab", "cd", "ef", "gh", "ij"};
  for (std::size_t killer = 0; killer < 5; ++killer) {
    INFO("task " << killer);
    HelperPool pool(helper_options());
    HelperLoan loan = taken(pool);
    std::vector<HelperTask> tasks;
    for (const std::string& input : inputs) tasks.push_back(deed(Deed::kReverse, 0, input));
    tasks[killer] = deed(Deed::kCrash);
    const std::vector<std::string> found = all_of(loan, tasks);
    REQUIRE(found.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(found[i] == (i == killer ? "the deed ends the process that reads it (SIGSEGV), and "
                                       "others in its place"
                                     : reversed(inputs[i])));
    }
    // The group's, and three that the task ended alone.
    CHECK(pool.totals().died == 4);
    CHECK(pool.totals().started == (killer == 4 ? 4 : 5));
  }
}

TEST_CASE("a helper that others end costs none of a group's tasks") {
  HelperPool pool(helper_options());
  HelperLoan loan = taken(pool);
  const std::vector<HelperTask> tasks(8, deed(Deed::kWork, 50, "abc"));
  const pid_t child = children_of(::getpid(), kHelperName).at(0);
  std::thread killer([child] {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    ::kill(child, SIGKILL);
  });
  const std::vector<std::string> found = all_of(loan, tasks);
  killer.join();
  CHECK(found == std::vector<std::string>(8, "cba"));
  CHECK(pool.totals().died == 1);
  CHECK(pool.totals().started == 2);
}

TEST_CASE("answers that a group cannot have end the helper, and nothing of them is used") {
  for (const Deed what : {Deed::kAnswerMany, Deed::kAnswerEmpty, Deed::kAnswerPart,
                          Deed::kAnswerHuge, Deed::kAnswerWrap}) {
    INFO("deed " << static_cast<int>(what));
    HelperStarter starter;
    const auto helper = started(starter);
    const GroupOutcome outcome =
        helper->run_group(std::vector{deed(what), deed(Deed::kReverse), deed(Deed::kReverse)});
    REQUIRE(outcome.end);
    CHECK(outcome.end->signal == SIGKILL);
    CHECK_FALSE(outcome.end->too_slow);
    CHECK(outcome.replies.empty());
  }
}

TEST_CASE("an error is not believed of a task among others") {
  HelperStarter starter;
  const auto helper = started(starter);
  const GroupOutcome outcome =
      helper->run_group(std::vector{deed(Deed::kAnswerError), deed(Deed::kReverse),
                                    deed(Deed::kReverse)});
  CHECK_FALSE(outcome.end);
  CHECK_FALSE(outcome.lacked_memory);
  REQUIRE(outcome.replies.size() == 1);
  CHECK(outcome.replies[0]);
}

}  // namespace
}  // namespace speedo::test
