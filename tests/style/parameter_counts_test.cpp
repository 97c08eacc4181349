#include "style/parameter_counts.hpp"

#include "style/findings.hpp"

namespace speedo {
namespace {

constexpr std::size_t kParametersMax = 6;

// "name parameters" of each function.
std::vector<std::string> heads_of(const std::string& text) {
  std::vector<std::string> heads;
  for (const FunctionHead& head : function_heads(text)) {
    heads.push_back(head.name + " " + std::to_string(head.parameters));
  }
  return heads;
}

using Heads = std::vector<std::string>;

TEST_CASE("Parameters are counted of declarations and definitions") {
  CHECK(
      heads_of(
          "void f(); int g(void);\nnamespace a { long h(int a, int b) { return k(1, 2, 3); } }") ==
      Heads{"f 0", "g 0", "h 2"});
  CHECK(heads_of("template <class A, class B> std::map<A, B> f(std::map<A, B> x, A y);") ==
        Heads{"f 2"});
  CHECK(heads_of("[[nodiscard]] int f(const std::function<void(int, int)>& g, int (*h)(int, int),\n"
                 "  S s = {1, 2}, T t = make(3, 4)) noexcept;") == Heads{"f 4"});
  CHECK(heads_of("auto f(int a, int b) -> std::pair<int, int>;") == Heads{"f 2"});
}

TEST_CASE("Parameters are counted of members, constructors and operators") {
  CHECK(heads_of("class alignas(64) C final : public B<int, int> {\n public:\n"
                 "  explicit C(int a, int b) : a_(a, 1, 2), b_{b}, c_(1, 2, 3) { run(a, b); }\n"
                 "  virtual void go(int) const = 0;\n  bool operator==(const C&) const = default;\n"
                 "  int operator()(int a, int b) const { return a < b; }\n"
                 "  int a_ = f(1, 2, 3), b_{4};\n};\nint x();") ==
        Heads{"C 2", "go 1", "operator 1", "operator 2", "x 0"});
  CHECK(
      heads_of("int C::f(int a, int b) const { struct L { void g(int, int); }; }\nvoid h(int);") ==
      Heads{"f 2", "h 1"});
  CHECK(
      heads_of("extern \"C\" { void f(int, int); }\nenum class E { kA = g(1), kB };\nvoid h();") ==
      Heads{"f 2", "h 0"});
}

TEST_CASE("Variables and aliases are no functions") {
  CHECK(heads_of(
            "using F = int(int, int); constexpr int a = f(1, 2); const T t{g(1, 2)};\n"
            "inline constexpr int b[] = {1, 2}; std::function<void(int, int)> c;\nvoid h(int);") ==
        Heads{"h 1"});
  CHECK(heads_of("const auto f = [](int a, int b) { return a + b; };\nvoid h(int);") ==
        Heads{"h 1"});
}

TEST_CASE("No function has more than six parameters") {
  Findings findings;
  for (const SourceFile& file : tree()) {
    if (!file.is_code()) continue;
    for (const FunctionHead& head : function_heads(file.text)) {
      if (head.parameters <= kParametersMax) continue;
      findings.push_back(file.path + ":" + std::to_string(head.line) + ": " + head.name + " has " +
                         std::to_string(head.parameters) + " parameters");
    }
  }
  expect_none(findings);
}

}  // namespace
}  // namespace speedo
