// What the tidy rules understand of C++ types, on sources made for it.

#include "style/type_names.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

namespace speedo {
namespace {

std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  for (const TypeDefinition& type : type_definitions(text)) names.push_back(type.name);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("Every kind of type definition is seen, with its namespaces and its line") {
  const std::string text =
      "namespace speedo {\n"
      "class Reader : public Base {};\n"
      "struct Writer final { int x; };\n"
      "enum class Mode : int { kFast };\n"
      "enum Old { kA };\n"
      "union Bits { float f; };\n"
      "template <class T, class U = std::vector<int>>\n"
      "class [[nodiscard]] Result {\n};\n"
      "struct alignas(64) Padded { int x; };\n"
      "namespace inner { struct Deep {}; }\n"
      "}\n"
      "struct Global {};\n";
  CHECK(names_in(text) == Names{"speedo::Reader", "speedo::Writer", "speedo::Mode", "speedo::Old",
                                "speedo::Bits", "speedo::Result", "speedo::Padded",
                                "speedo::inner::Deep", "Global"});
  CHECK(type_definitions(text)[1].line == 3);
  CHECK(names_in("template <class T> requires Number<T> struct Sum { T x; };") == Names{"Sum"});
  CHECK(names_in("namespace a::b { struct C {}; }") == Names{"a::b::C"});
}

TEST_CASE("Types that nobody else sees are left out") {
  CHECK(names_in("namespace speedo { namespace { class Hidden {}; } }").empty());
  CHECK(names_in("namespace speedo { class Outer { struct Inner {}; enum E { kA }; }; }") ==
        Names{"speedo::Outer"});
  CHECK(names_in("void f() { struct Local {}; }").empty());
  CHECK(names_in("namespace speedo { struct Net::Impl { int x; }; }").empty());
}

TEST_CASE("What only looks like a definition is left out") {
  CHECK(names_in("class Later; enum class Mode : int; friend class Other;").empty());
  CHECK(names_in("template <> struct Result<void> {};").empty());
  CHECK(names_in("template <class T> T first(T x) { return x; }").empty());
  CHECK(names_in("struct Point origin() { return {}; }").empty());
  CHECK(names_in("// class A {};\n/* struct B {}; */ const char* s = \"struct C {\";").empty());
  CHECK(names_in("const char* s = R\"x(struct D { \")x\"; char c = '{'; int n = 1'000;").empty());
  CHECK(names_in("#define MAKE(n) struct n { \\\n int x; }\nstruct Real {};") == Names{"Real"});
}

}  // namespace
}  // namespace speedo
