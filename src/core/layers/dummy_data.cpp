#include "core/layers/dummy_data.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "caffe.pb.h"
#include "core/fillers.hpp"
#include "core/layers/support.hpp"

namespace speedo {

Result<std::vector<Shape>> DummyDataLayer::read_shapes(std::size_t tops) const {
  const auto& options = parameter_message().dummy_data_param();
  const auto fits = [tops](int count) {
    return count == 1 || static_cast<std::size_t>(count) == tops;
  };
  const bool has_shapes = options.shape_size() > 0;
  const bool has_legacy =
      options.num_size() + options.channels_size() + options.height_size() + options.width_size() >
      0;
  if (has_shapes && has_legacy) {
    return Error{ErrorCode::kConfig, "give either shape or num, channels, height and width"};
  }
  if (has_shapes ? !fits(options.shape_size())
                 : !(fits(options.num_size()) && fits(options.channels_size()) &&
                     fits(options.height_size()) && fits(options.width_size()))) {
    return Error{ErrorCode::kConfig,
                 fmt::format("needs one shape, or one per top; it has {} tops", tops)};
  }
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < tops; ++i) {
    const auto at = [i](const auto& values) {
      return values[values.size() == 1 ? 0 : static_cast<int>(i)];
    };
    if (has_shapes) {
      SPEEDO_ASSIGN(Shape shape, shape_from(at(options.shape())));
      shapes.push_back(std::move(shape));
    } else {
      SPEEDO_ASSIGN(Shape shape, Shape::create({at(options.num()), at(options.channels()),
                                                at(options.height()), at(options.width())}));
      shapes.push_back(std::move(shape));
    }
  }
  return shapes;
}

Result<void> DummyDataLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  auto shapes = read_shapes(tops.size());
  if (!shapes) return error(shapes.error().message);
  shapes_ = std::move(*shapes);
  const auto& given = parameter_message().dummy_data_param().data_filler();
  if (given.size() > 1 && static_cast<std::size_t>(given.size()) != tops.size()) {
    return error(
        fmt::format("data_filler is given {} times for {} tops; give none, one, or one "
                    "per top",
                    given.size(), tops.size()));
  }
  fillers_.clear();
  for (std::size_t i = 0; i < tops.size(); ++i) {
    fillers_.push_back(given.empty() ? &caffe::FillerParameter::default_instance()
                                     : &given[given.size() == 1 ? 0 : static_cast<int>(i)]);
    if (auto good = check_filler(*fillers_[i], shapes_[i]); !good) {
      return error(good.error().message);
    }
  }
  return {};
}

Result<void> DummyDataLayer::reshape(Tensors /*bottoms*/, Tensors tops) {
  for (std::size_t i = 0; i < tops.size(); ++i) tops[i]->reshape(shapes_[i]);
  filled_.assign(tops.size(), false);
  return {};
}

Result<void> DummyDataLayer::forward(Tensors /*bottoms*/, Tensors tops) {
  SPEEDO_ASSERT(context().random != nullptr);
  for (std::size_t i = 0; i < tops.size(); ++i) {
    if (filled_[i]) continue;
    values_.resize(static_cast<std::size_t>(shapes_[i].count()));
    if (auto done = fill(*fillers_[i], shapes_[i], *context().random, values_); !done) {
      return error(done.error().message, done.error().code);
    }
    backend().device().upload(tops[i]->data(), values_);
    filled_[i] = fillers_[i]->type() == "constant";
  }
  return {};
}

}  // namespace speedo
