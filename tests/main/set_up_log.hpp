#pragma once

#include <cstdint>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace speedo::test {

// What a log of Caffe says of a net that it builds.
struct LoggedLayer {
  std::string name;
  std::vector<std::string> bottoms, tops;  // a top as it stands there, "ip1 (in-place)"
  std::vector<std::string> shapes;         // "8 6 (48)"
  std::vector<double> loss_weights;        // of the tops that have one
  std::int64_t memory = -1;                // bytes, after this layer
  bool operator==(const LoggedLayer&) const = default;
};

struct LoggedNet {
  std::vector<std::string> filtered;  // "The NetState ..."
  std::string prototxt;               // what stands below "Initializing net from parameters: "
  std::vector<LoggedLayer> layers;
  std::vector<std::string> needs, needs_not;  // backward computation
  std::vector<std::string> outputs;
  bool is_done = false;
};

// Reads every net of a log. The rules are those that logs of Caffe show; a line of the set-up that
// stands where none of Caffe's does is an exception.
class SetUpLog {
 public:
  static std::vector<LoggedNet> parse(const std::string& text) {
    SetUpLog log;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) log.take(line);
    return log.nets_;
  }

 private:
  // Words, where they may stand, and what they mean.
  void take(const std::string& line) {
    static const std::regex prefix_form(
        R"(^[IWEF]\d{4}(\d{4})? \d\d:\d\d:\d\d\.\d{6} +\d+ [\w.]+:\d+\] (.*)$)");
    std::smatch match;
    if (!std::regex_match(line, match, prefix_form)) {
      if (is_in_prototxt_) net().prototxt += line + "\n";
      return;
    }
    is_in_prototxt_ = false;
    const std::string text = match[2];
    if (text.starts_with("The NetState ")) {
      filtered_.push_back(text);
    } else if (text == "Initializing net from parameters: ") {
      nets_.emplace_back().filtered.swap(filtered_);
      is_in_prototxt_ = true;
    } else {
      take_layer(text) || take_end(text);
    }
  }

  bool take_layer(const std::string& text) {
    static const std::regex creating_form(R"(^Creating Layer (\S+)$)");
    static const std::regex bottom_form(R"(^(\S+) <- (\S+)$)");
    static const std::regex top_form(R"(^(\S+) -> (\S+( \(in-place\))?)$)");
    static const std::regex set_up_form(R"(^Setting up (\S+)$)");
    static const std::regex shape_form(R"(^Top shape: ((\d+ )*\(\d+\))$)");
    static const std::regex weight_form(R"(^    with loss weight (\S+)$)");
    static const std::regex memory_form(R"(^Memory required for data: (\d+)$)");
    std::smatch match;
    if (std::regex_match(text, match, creating_form)) {
      net().layers.emplace_back().name = match[1];
    } else if (std::regex_match(text, match, bottom_form)) {
      layer(match[1]).bottoms.push_back(match[2]);
    } else if (std::regex_match(text, match, top_form)) {
      layer(match[1]).tops.push_back(match[2]);
    } else if (std::regex_match(text, match, set_up_form)) {
      layer(match[1]);
    } else if (std::regex_match(text, match, shape_form)) {
      net().layers.back().shapes.push_back(match[1]);
    } else if (std::regex_match(text, match, weight_form)) {
      net().layers.back().loss_weights.push_back(std::stod(match[1]));
    } else if (std::regex_match(text, match, memory_form)) {
      net().layers.back().memory = std::stoll(match[1]);
    } else {
      return false;
    }
    return true;
  }

  bool take_end(const std::string& text) {
    static const std::regex need_form(R"(^(\S+) (needs|does not need) backward computation\.$)");
    static const std::regex output_form(R"(^This network produces output (\S+)$)");
    std::smatch match;
    if (std::regex_match(text, match, need_form)) {
      (match[2] == "needs" ? net().needs : net().needs_not).push_back(match[1]);
    } else if (std::regex_match(text, match, output_form)) {
      net().outputs.push_back(match[1]);
    } else if (text == "Network initialization done.") {
      net().is_done = true;
    } else {
      return false;
    }
    return true;
  }

  LoggedNet& net() {
    if (nets_.empty() || nets_.back().is_done) throw std::runtime_error("a line outside of a net");
    return nets_.back();
  }
  LoggedLayer& layer(const std::string& name) {
    if (net().layers.empty() || net().layers.back().name != name) {
      throw std::runtime_error("a line of layer " + name + " outside of it");
    }
    return net().layers.back();
  }

  std::vector<std::string> filtered_;
  std::vector<LoggedNet> nets_;
  bool is_in_prototxt_ = false;
};

}  // namespace speedo::test
