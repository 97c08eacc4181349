#include "core/net/net_split.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/suggest.hpp"

namespace speedo {
namespace {

struct TopUse {
  int readers = 0;      // bottoms, plus one for an explicit loss weight
  int next_reader = 0;  // while bottoms are renamed
  float loss_weight = 0.0F;
};

using TopPlace = std::pair<int, int>;  // layer, index among its tops

class SplitInserter {
 public:
  SplitInserter(caffe::NetParameter& net, const std::vector<std::string>& given,
                std::vector<std::string>* changed_losses)
      : net_(net), given_(given), changed_losses_(changed_losses) {
    for (std::size_t i = 0; i < given.size(); ++i)
      latest_[given[i]] = {kGiven, static_cast<int>(i)};
  }

  Result<void> run() {
    for (int i = 0; i < net_.layer_size(); ++i) {
      SPEEDO_TRY(count_uses(i));
    }
    caffe::NetParameter split;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      std::vector<caffe::LayerParameter> splits;
      caffe::LayerParameter nobody;
      *nobody.mutable_top() = {given_.begin(), given_.end()};
      add_split({kGiven, static_cast<int>(i)}, nobody, splits);
      for (caffe::LayerParameter& before : splits) *split.add_layer() = std::move(before);
    }
    for (int i = 0; i < net_.layer_size(); ++i) {
      caffe::LayerParameter layer = std::move(*net_.mutable_layer(i));
      rename_bottoms(i, layer);
      std::vector<caffe::LayerParameter> splits;
      for (int top = 0; top < layer.top_size(); ++top) {
        add_split({i, top}, layer, splits);
      }
      *split.add_layer() = std::move(layer);
      for (caffe::LayerParameter& behind : splits) {
        *split.add_layer() = std::move(behind);
      }
    }
    net_.mutable_layer()->Swap(split.mutable_layer());
    return {};
  }

 private:
  Result<void> count_uses(int index) {
    const caffe::LayerParameter& layer = net_.layer(index);
    producer_names_.push_back(layer.name());
    for (int bottom = 0; bottom < layer.bottom_size(); ++bottom) {
      const auto producer = latest_.find(layer.bottom(bottom));
      if (producer == latest_.end()) {
        return unknown_bottom(layer, bottom);
      }
      sources_[{index, bottom}] = producer->second;
      ++uses_[producer->second].readers;
    }
    for (int top = 0; top < layer.top_size(); ++top) {
      latest_[layer.top(top)] = {index, top};
    }
    for (int top = 0; top < std::min(layer.loss_weight_size(), layer.top_size()); ++top) {
      TopUse& use = uses_[latest_[layer.top(top)]];
      use.loss_weight = layer.loss_weight(top);
      use.readers += use.loss_weight != 0.0F ? 1 : 0;
    }
    return {};
  }

  Error unknown_bottom(const caffe::LayerParameter& layer, int bottom) const {
    std::vector<std::string> known;
    for (const auto& [name, place] : latest_) {
      known.push_back(name);
    }
    return {ErrorCode::kConfig,
            fmt::format("layer '{}' ({}): unknown bottom blob '{}' (bottom {}): no earlier layer "
                        "of this phase has that top{}",
                        layer.name(), layer.type(), layer.bottom(bottom), bottom,
                        did_you_mean(layer.bottom(bottom), known))};
  }

  std::string split_name(const TopPlace& top, const std::string& blob) const {
    const std::string& producer =
        top.first == kGiven ? kInput : producer_names_[static_cast<std::size_t>(top.first)];
    return fmt::format("{}_{}_{}_split", blob, producer, top.second);
  }

  void rename_bottoms(int index, caffe::LayerParameter& layer) {
    for (int bottom = 0; bottom < layer.bottom_size(); ++bottom) {
      const TopPlace source = sources_[{index, bottom}];
      TopUse& use = uses_[source];
      if (use.readers > 1) {
        layer.set_bottom(bottom, fmt::format("{}_{}", split_name(source, layer.bottom(bottom)),
                                             use.next_reader++));
      }
    }
  }

  void add_split(const TopPlace& place, caffe::LayerParameter& producer,
                 std::vector<caffe::LayerParameter>& splits) {
    TopUse& use = uses_[place];
    if (use.readers <= 1) {
      return;
    }
    caffe::LayerParameter& split = splits.emplace_back();
    const std::string& blob = producer.top(place.second);
    split.set_name(split_name(place, blob));
    split.set_type("Split");
    split.add_bottom(blob);
    for (int i = 0; i < use.readers; ++i) {
      split.add_top(fmt::format("{}_{}", split.name(), i));
      if (use.loss_weight != 0.0F) {
        split.add_loss_weight(i == 0 ? use.loss_weight : 0.0F);
      }
    }
    if (use.loss_weight != 0.0F) {
      // As in Caffe, all weights of the producer go, and a loss layer falls back on its default.
      if (producer.loss_weight_size() != 0) note_changed_losses(place, producer);
      producer.clear_loss_weight();
      use.next_reader = 1;
    }
  }

  // `place`: the first top of the producer that takes the weights away.
  void note_changed_losses(const TopPlace& place, const caffe::LayerParameter& producer) {
    if (changed_losses_ == nullptr) return;
    for (int top = 0; top < producer.top_size(); ++top) {
      const TopUse& use = uses_[{place.first, top}];
      const bool has_default = top == 0 && producer.type().ends_with("Loss");
      const float counted =
          (has_default ? 1.0F : 0.0F) + (use.readers > 1 ? use.loss_weight : 0.0F);
      if (counted == use.loss_weight) continue;
      changed_losses_->push_back(fmt::format(
          "layer '{}' ({}): the loss_weight {:g} of top '{}' counts as {:g}, as in Caffe, because "
          "another layer reads top '{}': set that one's to 0, and put a Split with loss_weight: "
          "{:g} behind it",
          producer.name(), producer.type(), use.loss_weight, producer.top(top), counted,
          producer.top(place.second), uses_[place].loss_weight));
    }
  }

  static constexpr int kGiven = -1;
  const std::string kInput = "input";

  caffe::NetParameter& net_;
  const std::vector<std::string>& given_;
  std::vector<std::string>* changed_losses_;
  std::vector<std::string> producer_names_;
  std::map<std::string, TopPlace> latest_;  // the last producer of each blob so far
  std::map<TopPlace, TopPlace> sources_;    // of each bottom
  std::map<TopPlace, TopUse> uses_;
};

}  // namespace

Result<void> insert_splits(caffe::NetParameter& net, const std::vector<std::string>& given,
                           std::vector<std::string>* changed_losses) {
  return SplitInserter(net, given, changed_losses).run();
}

}  // namespace speedo
