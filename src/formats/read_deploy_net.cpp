#include "formats/read_deploy_net.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/parse_number.hpp"
#include "base/read_found.hpp"
#include "core/prototxt.hpp"
#include "data/claimed_size.hpp"

namespace speedo {

namespace {

using Shapes = std::map<std::string, Shape>;

Result<Shape> parse_shape(const std::string& text) {
  std::vector<std::int64_t> dims;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const auto dim = parse_number<std::int64_t>(part);
    if (!dim || *dim < 1) {
      return usage_error(
          fmt::format("--shape takes numbers from 1 on with commas between them, "
                      "as 1,3,227,227, not '{}'",
                      text));
    }
    dims.push_back(*dim);
  }
  if (dims.empty()) return usage_error("--shape has a shape without numbers: '" + text + "'");
  auto shape = Shape::create(std::move(dims));
  if (!shape) return usage_error("--shape: " + shape.error().message);
  return shape;
}

// The blob that a shape without a name is of.
Result<std::string> only_input(const std::vector<DeployInput>& inputs) {
  if (inputs.size() == 1) return inputs.front().blob;
  return usage_error(
      fmt::format("the net has {} inputs: give --shape as BLOB=N,C,H,W, for several "
                  "with semicolons between them",
                  inputs.size()));
}

Result<Shapes> given_shapes(const std::string& text, const std::vector<DeployInput>& inputs) {
  Shapes shapes;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ';');) {
    const std::size_t equals = part.rfind('=');
    std::string blob = equals == std::string::npos ? "" : part.substr(0, equals);
    if (equals == std::string::npos) {
      SPEEDO_ASSIGN(blob, only_input(inputs));
    }
    const bool is_input = std::any_of(inputs.begin(), inputs.end(),
                                      [&](const DeployInput& input) { return input.blob == blob; });
    if (!is_input) return usage_error(fmt::format("--shape: the net has no input '{}'", blob));
    const std::string dims = equals == std::string::npos ? part : part.substr(equals + 1);
    SPEEDO_ASSIGN(const Shape shape, parse_shape(dims));
    if (!shapes.emplace(blob, shape).second) {
      return usage_error(fmt::format("--shape: the input '{}' has two shapes: give one", blob));
    }
  }
  return shapes;
}

// Adds what the data layers of the TEST net make.
Result<void> add_shapes_of_data(const caffe::NetParameter& net, const DeployRequest& request,
                                const NetOptions& options, Shapes& shapes) {
  auto built = plan_whole_net(net, Phase::kTest, request, options);
  if (!built) {
    Error error = std::move(built).error();
    error.message += "; with --shape the data need not be there";
    return error;
  }
  for (const std::string& name : (*built)->blob_names()) {
    shapes.emplace(name, (*built)->blob(name)->shape());
  }
  return {};
}

Result<Shapes> shapes_of_inputs(const caffe::NetParameter& net, const DeployRequest& request,
                                const NetOptions& options) {
  SPEEDO_ASSIGN(const std::vector<DeployInput> inputs, deploy_inputs(net, request.options));
  SPEEDO_ASSIGN(const Shapes given, given_shapes(request.shapes, inputs));
  Shapes known = given;
  for (const DeployInput& input : inputs) {
    if (input.shape) known.emplace(input.blob, *input.shape);
  }
  const bool all_known = std::all_of(inputs.begin(), inputs.end(), [&](const DeployInput& input) {
    return known.count(input.blob) != 0;
  });
  if (!all_known) SPEEDO_TRY(add_shapes_of_data(net, request, options, known));
  Shapes shapes;
  for (const DeployInput& input : inputs) {
    const auto found = known.find(input.blob);
    if (found == known.end()) continue;
    std::vector<std::int64_t> dims = found->second.dims();
    if (request.batch && !dims.empty()) dims.front() = *request.batch;
    SPEEDO_ASSIGN(shapes[input.blob], Shape::create(std::move(dims)));
  }
  return shapes;
}

}  // namespace

Result<caffe::NetParameter> read_whole_net(const DeployRequest& request) {
  return read_found(request.model, {}, read_net_prototxt);
}

Result<std::unique_ptr<Net>> plan_whole_net(const caffe::NetParameter& net, Phase phase,
                                            const DeployRequest& request, NetOptions options) {
  options.phase = phase;
  options.level = request.options.state.level();
  options.stages.assign(request.options.state.stage().begin(), request.options.state.stage().end());
  options.base = request.model.parent_path();
  options.plan_only = true;
  options.trains = false;
  return Net::create(net, options);
}

Result<caffe::NetParameter> read_deploy_net(const DeployRequest& request,
                                            const NetOptions& net_options) {
  SPEEDO_ASSIGN(const caffe::NetParameter net, read_whole_net(request));
  DeployOptions options = request.options;
  SPEEDO_ASSIGN(options.shapes, shapes_of_inputs(net, request, net_options));
  return deploy_net(net, options);
}

Result<std::unique_ptr<Net>> build_deploy_net(const caffe::NetParameter& deployed,
                                              NetOptions options) {
  // In the net, as a message, and in the file.
  constexpr std::int64_t kCopiesOfWeights = 3;
  options.phase = Phase::kTest;
  options.trains = false;
  options.plan_only = true;
  Net::Memory memory;
  {
    SPEEDO_ASSIGN(const std::unique_ptr<Net> planned, Net::create(deployed, options));
    memory = planned->memory();
  }
  const std::int64_t bytes = memory.blob_bytes + memory.workspace_bytes + memory.scratch_bytes +
                             kCopiesOfWeights * memory.parameter_bytes;
  const auto fits = check_memory("the net", static_cast<std::uint64_t>(bytes));
  if (!fits)
    return config_error(fits.error().message + "; a smaller --shape or --batch takes less");
  options.plan_only = false;
  return Net::create(deployed, options);
}

}  // namespace speedo
