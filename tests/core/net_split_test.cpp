#include "core/net/net_split.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "core/net/net_filter.hpp"
#include "core/weight_file.hpp"
#include "net_support.hpp"
#include "support/shared_fixtures.hpp"
#include "support/skip.hpp"

namespace speedo {
namespace {

// Each layer as "name(bottoms > tops)".
std::vector<std::string> wiring_of(const caffe::NetParameter& net) {
  std::vector<std::string> lines;
  for (const auto& layer : net.layer()) {
    std::string line = layer.name() + "(";
    for (const auto& bottom : layer.bottom()) line += bottom + " ";
    line += ">";
    for (const auto& top : layer.top()) line += " " + top;
    lines.push_back(line + ")");
  }
  return lines;
}

caffe::NetParameter split(const std::string& text) {
  caffe::NetParameter net = net_message(text);
  const auto result = insert_splits(net);
  INFO((result ? "" : result.error().message));
  REQUIRE(result.has_value());
  return net;
}

const std::string kRelu = "layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'd' }";

TEST_CASE("a blob with one reader gets no split", "[split]") {
  CHECK(wiring_of(split(input("d", "dim: 1") + product("p", "d"))) ==
        std::vector<std::string>{"d(> d)", "p(d > p)"});
}

TEST_CASE("splits are named by blob, producer and top, and follow the last producer", "[split]") {
  const auto net = split(input("d", "dim: 1") + kRelu + product("p", "d") + product("q", "d"));
  CHECK(wiring_of(net) == std::vector<std::string>{"d(> d)", "r(d > d)",
                                                   "d_r_0_split(d > d_r_0_split_0 d_r_0_split_1)",
                                                   "p(d_r_0_split_0 > p)", "q(d_r_0_split_1 > q)"});
}

TEST_CASE("a layer that reads a blob twice reads two tops of its split", "[split]") {
  const auto net = split(input("d", "dim: 1") + loss("d", "d"));
  CHECK(wiring_of(net).back() == "loss(d_d_0_split_0 d_d_0_split_1 > loss)");
}

TEST_CASE("an explicit loss weight is a reader and moves to the first top", "[split]") {
  const auto net =
      split(input("d", "dim: 2") + product("p", "d", "loss_weight: 0.5") + product("q", "p"));
  CHECK(wiring_of(net) == std::vector<std::string>{"d(> d)", "p(d > p)",
                                                   "p_p_0_split(p > p_p_0_split_0 p_p_0_split_1)",
                                                   "q(p_p_0_split_1 > q)"});
  CHECK(net.layer(1).loss_weight_size() == 0);
  REQUIRE(net.layer(2).loss_weight_size() == 2);
  CHECK(net.layer(2).loss_weight(0) == 0.5F);
  CHECK(net.layer(2).loss_weight(1) == 0.0F);
  // Nobody else reads it: it stays where it is.
  CHECK(split(product("p", "d", "loss_weight: 2").insert(0, input("d", "dim: 2")))
            .layer(1)
            .loss_weight(0) == 2.0F);
}

// What is told of a net in which the first top of layer 'l' is read.
std::vector<std::string> changed_losses(const std::string& layer) {
  caffe::NetParameter net =
      net_message(input("d", "dim: 2") + input("y", "dim: 2") + "layer { name: 'l' bottom: 'd' " +
                  layer + " }\nlayer { name: 'q' type: 'Power' bottom: 'a' top: 'q' }");
  std::vector<std::string> lines;
  REQUIRE(insert_splits(net, {}, &lines));
  return lines;
}

TEST_CASE("losses that count otherwise than their weights say are told of", "[split]") {
  using Lines = std::vector<std::string>;
  CHECK(changed_losses("type: 'Slice' top: 'a' top: 'b' loss_weight: 2 loss_weight: 3") ==
        Lines{"layer 'l' (Slice): the loss_weight 3 of top 'b' counts as 0, as in Caffe, because "
              "another layer reads top 'a': set that one's to 0, and put a Split with "
              "loss_weight: 2 behind it"});
  CHECK(changed_losses("type: 'EuclideanLoss' bottom: 'y' top: 'a' loss_weight: 0.25") ==
        Lines{"layer 'l' (EuclideanLoss): the loss_weight 0.25 of top 'a' counts as 1.25, as in "
              "Caffe, because another layer reads top 'a': set that one's to 0, and put a Split "
              "with loss_weight: 0.25 behind it"});
  const Lines softmax = changed_losses(
      "type: 'SoftmaxWithLoss' bottom: 'y' top: 'b' top: 'a' loss_weight: 0 loss_weight: 2");
  REQUIRE(softmax.size() == 1);
  CHECK(softmax[0].find("loss_weight 0 of top 'b' counts as 1,") != std::string::npos);
  CHECK(changed_losses("type: 'Slice' top: 'a' top: 'b' loss_weight: 2 loss_weight: 0").empty());
  CHECK(changed_losses("type: 'Slice' top: 'a' top: 'b' loss_weight: 0 loss_weight: 3").empty());
  CHECK(changed_losses("type: 'EuclideanLoss' bottom: 'y' top: 'a'").empty());
}

TEST_CASE("several tops of one layer each get their split behind it", "[split]") {
  const std::string two = "layer { name: 'i' type: 'Input' top: 'a' top: 'b' }";
  const auto net = split(two + loss("a", "b") + product("p", "a") + product("q", "b"));
  CHECK(wiring_of(net) == std::vector<std::string>{"i(> a b)",
                                                   "a_i_0_split(a > a_i_0_split_0 a_i_0_split_1)",
                                                   "b_i_1_split(b > b_i_1_split_0 b_i_1_split_1)",
                                                   "loss(a_i_0_split_0 b_i_1_split_0 > loss)",
                                                   "p(a_i_0_split_1 > p)", "q(b_i_1_split_1 > q)"});
}

TEST_CASE("an unknown bottom is an error with the nearest name", "[split]") {
  caffe::NetParameter net = net_message(input("conv1", "dim: 1") + product("p", "conv2"));
  const auto result = insert_splits(net);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kConfig);
  CHECK(result.error().message.find("layer 'p'") != std::string::npos);
  CHECK(result.error().message.find("did you mean 'conv1'") != std::string::npos);
}

// What Caffe wrote down of its nets holds the wiring after its own split insertion.
void check_against_caffe(const std::filesystem::path& folder) {
  INFO(folder.string());
  auto net = read_net_prototxt(folder / "net.prototxt");
  const auto caffes = read_caffemodel(folder / "weights.caffemodel");
  REQUIRE(net.has_value());
  REQUIRE(caffes.has_value());
  caffe::NetState state;
  state.set_phase(caffes->layer(0).phase());
  REQUIRE(filter_layers(state, *net).has_value());
  REQUIRE(insert_splits(*net).has_value());
  CHECK(wiring_of(*net) == wiring_of(*caffes));
}

TEST_CASE("nets are wired as Caffe wired them", "[split]") {
  check_against_caffe("tests/core/data/siamese_shared");
  check_against_caffe("tests/core/data/aux_losses");
}

TEST_CASE("the larger set of nets is wired as Caffe wired them", "[split]") {
  const auto shared = test::shared_fixtures("golden");
  if (!shared) SPEEDO_SKIP(test::no_shared_fixtures("golden"));
  for (const char* kind : {"nets", "layers"}) {
    for (const auto& entry : std::filesystem::directory_iterator(*shared / kind)) {
      check_against_caffe(entry.path());
    }
  }
}

std::vector<std::string> kept(const std::string& rules, const std::string& state_text) {
  caffe::NetParameter net = net_message("layer { name: 'x' " + rules + " }");
  caffe::NetState state;
  REQUIRE(parse_prototxt(state_text, "state", state).has_value());
  REQUIRE(filter_layers(state, net).has_value());
  return wiring_of(net);
}

TEST_CASE("include and exclude rules decide by phase, level and stage", "[filter]") {
  const auto in = [](const std::string& rules, const std::string& state) {
    INFO(rules << " in " << state);
    return !kept(rules, state).empty();
  };
  CHECK(in("", "phase: TRAIN"));
  CHECK(in("include { phase: TRAIN }", "phase: TRAIN"));
  CHECK_FALSE(in("include { phase: TRAIN }", "phase: TEST"));
  CHECK_FALSE(in("exclude { phase: TEST }", "phase: TEST"));
  CHECK(in("include { min_level: 2 max_level: 4 }", "level: 4"));
  CHECK_FALSE(in("include { min_level: 2 }", "level: 1"));
  CHECK_FALSE(in("include { max_level: 4 }", "level: 5"));
  CHECK_FALSE(in("include { stage: 'a' stage: 'b' }", "stage: 'a'"));
  CHECK(in("include { stage: 'a' stage: 'b' }", "stage: 'b' stage: 'a' stage: 'c'"));
  CHECK_FALSE(in("include { stage: 'a' not_stage: 'b' }", "stage: 'a' stage: 'b'"));
  // Any rule is enough.
  CHECK(in("include { phase: TRAIN } include { stage: 'a' }", "phase: TEST stage: 'a'"));
  CHECK_FALSE(in("exclude { phase: TRAIN } exclude { stage: 'a' }", "phase: TEST stage: 'a'"));
}

TEST_CASE("each rule that is not met is told of, as Caffe's log does", "[filter]") {
  caffe::NetParameter net = net_message(
      "layer { name: 'a' include { phase: TRAIN } include { min_level: 3 } include { max_level: 1 "
      "} }"
      "layer { name: 'b' include { stage: 'x' } }"
      "layer { name: 'c' include { not_stage: 'y' } include { phase: TEST } }");
  caffe::NetState state;
  state.set_level(2);
  state.add_stage("y");
  std::vector<std::string> why;
  const auto note = [&](const std::string& sentence) { why.push_back(sentence); };
  REQUIRE(filter_layers(state, net, note).has_value());
  CHECK(why ==
        std::vector<std::string>{
            "The NetState phase (1) differed from the phase (0) specified by a rule in layer a",
            "The NetState level (2) is above the min_level (3) specified by a rule in layer a",
            "The NetState level (2) is above the max_level (1) specified by a rule in layer a",
            "The NetState did not contain stage 'x' specified by a rule in layer b",
            "The NetState contained a not_stage 'y' specified by a rule in layer c"});
  REQUIRE(net.layer_size() == 1);
  CHECK(net.layer(0).name() == "c");
}

TEST_CASE("a layer with both kinds of rules is refused", "[filter]") {
  caffe::NetParameter net =
      net_message("layer { name: 'x' include { phase: TRAIN } exclude { phase: TEST } }");
  CHECK_FALSE(filter_layers(caffe::NetState(), net).has_value());
}

}  // namespace
}  // namespace speedo
