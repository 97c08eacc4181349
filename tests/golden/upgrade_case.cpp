// Old forms: text nets and solvers against what Caffe's own upgrade tools made of them, and old
// binary weights against the values that Caffe computed with them.

#include <google/protobuf/util/message_differencer.h>

#include <string>

#include <speedo/backend/backend.hpp>
#include <speedo/base/file.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/model_files.hpp"
#include "golden/golden_case.hpp"

namespace speedo::golden {
namespace {

namespace fs = std::filesystem;

void compare_messages(const google::protobuf::Message& ours,
                      const google::protobuf::Message& reference, Comparison& comparison) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string report;
  differencer.ReportDifferencesToString(&report);
  const bool equal = differencer.Compare(reference, ours);
  comparison.require(equal, report.substr(0, report.find('\n')));
}

// Whether the text, as it stands, is a message of this kind.
template <class Message>
bool is_a(const std::string& text, Message& message) {
  return parse_prototxt(text, "reference", message).has_value();
}

Result<fs::path> deploy_stem(const fs::path& stem) {
  if (fs::exists(stem.string() + ".deploy.prototxt")) return stem;
  for (const fs::directory_entry& entry : fs::directory_iterator(stem.parent_path())) {
    const std::string name = entry.path().string();
    const std::size_t end = name.rfind(".deploy.prototxt");
    if (end != std::string::npos) return fs::path(name.substr(0, end));
  }
  return Error{ErrorCode::kNotFound, "no .deploy.prototxt beside " + stem.string()};
}

// Arrays at the file's root are the parameters, in the net's order.
Result<void> compare_parameters(Net& net, const Hdf5Reader& values, Comparison& comparison) {
  std::vector<std::vector<float>> parameters;
  for (const ParameterSlot& slot : net.layout().slots()) {
    parameters.push_back(download(net.backend(), net.weights().data() + slot.offset, slot.count()));
  }
  SPEEDO_ASSIGN(const std::vector<std::string> names, values.children("/"));
  std::size_t next = 0;
  for (const std::string& name : names) {
    if (!values.is_dataset("/" + name)) continue;
    SPEEDO_ASSIGN(const std::vector<float> reference, values.read_floats("/" + name));
    comparison.require(next < parameters.size(), "the net has no parameter for " + name);
    if (next < parameters.size()) comparison.values(name, parameters[next], reference, kExact);
    ++next;
  }
  return {};
}

Result<void> compare_forward(Net& net, const Hdf5Reader& values, Comparison& comparison) {
  SPEEDO_ASSIGN(const std::vector<std::string> inputs, values.children("in"));
  for (const std::string& name : inputs) {
    SPEEDO_ASSIGN(const std::vector<float> in, values.read_floats("in/" + name));
    Tensor* blob = net.blob(name);
    if (blob == nullptr || blob->count() != static_cast<std::int64_t>(in.size())) {
      return Error{ErrorCode::kMismatch, "the net has no fitting blob '" + name + "'"};
    }
    blob->set_values(net.backend(), in);
  }
  SPEEDO_TRY(net.forward());
  SPEEDO_ASSIGN(const std::vector<std::string> outputs, values.children("fwd"));
  for (const std::string& name : outputs) {
    SPEEDO_ASSIGN(const std::vector<float> reference, values.read_floats("fwd/" + name));
    const Tensor* blob = net.blob(name);
    if (blob == nullptr) return Error{ErrorCode::kMismatch, "the net has no blob '" + name + "'"};
    comparison.values("fwd/" + name, blob->values(net.backend()), reference);
  }
  return {};
}

}  // namespace

Result<Comparison> run_upgrade_case(const fs::path& path, const World& /*world*/) {
  const std::string in_name = path.string() + ".in.prototxt";
  SPEEDO_ASSIGN(const std::string in, read_file(in_name));
  SPEEDO_ASSIGN(const std::string out, read_file(path.string() + ".out.prototxt"));
  Comparison comparison;
  caffe::SolverParameter solver;
  if (is_a(out, solver)) {
    SPEEDO_ASSIGN(const caffe::SolverParameter ours, parse_solver_prototxt(in, in_name));
    compare_messages(ours, solver, comparison);
    return comparison;
  }
  caffe::NetParameter net;
  SPEEDO_TRY(parse_prototxt(out, path.string() + ".out.prototxt", net));
  SPEEDO_ASSIGN(const caffe::NetParameter ours, parse_net_prototxt(in, in_name));
  compare_messages(ours, net, comparison);
  return comparison;
}

Result<Comparison> run_weights_case(const fs::path& path, const World& world) {
  Comparison comparison;
  SPEEDO_ASSIGN(const caffe::NetParameter weights, read_model(path.string() + ".caffemodel"));
  const std::string upgraded = path.string() + ".upgraded.caffemodel";
  if (fs::exists(upgraded)) {
    SPEEDO_ASSIGN(const std::string bytes, read_file(upgraded));
    caffe::NetParameter reference;
    comparison.require(reference.ParseFromString(bytes), upgraded + " is not a NetParameter");
    compare_messages(weights, reference, comparison);
  }
  SPEEDO_ASSIGN(const fs::path stem, deploy_stem(path));
  SPEEDO_ASSIGN(const caffe::NetParameter deploy,
                read_net_prototxt(stem.string() + ".deploy.prototxt"));
  SPEEDO_TRY(check_layer_types(deploy));
  NetOptions options;
  options.phase = Phase::kTest;
  options.backend = world.backend;
  options.feeds = world.feeds;
  options.keep_blobs = true;
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, Net::create(deploy, options));
  SPEEDO_TRY(net->copy_weights_from(weights));
  SPEEDO_ASSIGN(const Hdf5Reader values, Hdf5Reader::open(stem.string() + ".h5"));
  SPEEDO_TRY(compare_parameters(*net, values, comparison));
  SPEEDO_TRY(compare_forward(*net, values, comparison));
  return comparison;
}

}  // namespace speedo::golden
