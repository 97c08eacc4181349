// Caffe's HDF5 files.
//
//   model:  /data/<layer>/<index>   float datasets; each layer has a group, even if it stays empty;
//   a
//                                   shared parameter is stored under its first user only
//           /diff/<layer>/<index>   gradients, for every user, if the model carries any
//   state:  /iter, /current_step    int32 [1]
//           /learned_net            string
//           /history/<index>        float datasets

#include "data/hdf5/model_hdf5.hpp"

#include <climits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/limits.hpp>

#include "base/parse_number.hpp"
#include "core/blob_proto.hpp"
#include "core/hdf5_names.hpp"
#include "data/claimed_size.hpp"
#include "data/hdf5/hdf5_file.hpp"

namespace speedo {

namespace {

constexpr int kBlobsPerLayerMax = 1024;  // none has more than a handful; keeps bad names harmless
constexpr int kGroupDepthMax = 32;

std::vector<std::int64_t> dims_of(const Shape& shape) { return shape.dims(); }

// The values of one dataset as a blob; they go to `data`, or to `diff` of an existing blob.
Result<void> read_blob(const Hdf5Reader& file, const std::string& path, bool diff,
                       caffe::BlobProto& blob) {
  SPEEDO_ASSIGN(std::vector<std::int64_t> dims, file.dims(path));
  SPEEDO_ASSIGN(const Shape shape, Shape::create(std::move(dims)));
  SPEEDO_TRY(file.check_size(path));
  SPEEDO_TRY(check_memory(fmt::format("HDF5 file '{}': '{}'", file.file_name(), path),
                          static_cast<std::uint64_t>(shape.count()) * sizeof(float)));
  const std::span<float> target = diff ? set_diff(shape, blob) : set_shape_and_data(shape, blob);
  return file.read_rows(path, 0, shape.axes() == 0 ? 1 : shape[0], target);
}

// "12" -> 12. Empty for any other name.
std::optional<int> index_of(const std::string& name) {
  const auto index = parse_number<int>(name);
  if (!index || *index < 0 || *index >= kBlobsPerLayerMax) return std::nullopt;
  return index;
}

// Gathers the layers below /data.
class ModelReader {
 public:
  explicit ModelReader(const Hdf5Reader& file) : file_(file) {}

  // Reads group `path` as layer `layer`, then the groups within: a layer name may contain '/'.
  Result<void> read(const std::string& path, const std::string& layer, int depth) {
    SPEEDO_TRY(check_group(path, depth));
    SPEEDO_ASSIGN(const std::vector<std::string> names, file_.children(path));
    caffe::LayerParameter* target = nullptr;
    std::vector<std::string> groups;
    for (const std::string& name : names) {
      if (!file_.is_dataset(path + "/" + name)) {
        groups.push_back(name);
        continue;
      }
      if (target == nullptr) target = net_.add_layer();
      target->set_name(layer);
      SPEEDO_TRY(read_parameter(path, layer, name, *target));
    }
    if (target == nullptr && groups.empty() && !layer.empty()) net_.add_layer()->set_name(layer);
    for (const std::string& name : groups) {
      SPEEDO_TRY(read(path + "/" + name, layer.empty() ? name : layer + "/" + name, depth + 1));
    }
    return {};
  }

  caffe::NetParameter take() { return std::move(net_); }

 private:
  Error fault(const std::string& path, const std::string& what) const {
    return Error{ErrorCode::kData,
                 fmt::format("HDF5 file '{}': '{}' {}", file_.file_name(), path, what)};
  }

  Result<void> check_group(const std::string& path, int depth) {
    if (depth > kGroupDepthMax) return fault(path, "is nested too deeply");
    return check_number(path, ++groups_, kHdf5GroupsMax, "groups");
  }

  Result<void> check_number(const std::string& path, int number, int most,
                            const char* what) const {
    if (number <= most) return {};
    return fault(path, fmt::format("is one of more than {} {}: links lead to the same ones again "
                                   "and again",
                                   most, what));
  }

  Result<void> read_parameter(const std::string& path, const std::string& layer,
                              const std::string& name, caffe::LayerParameter& target) {
    const std::string inner = path + "/" + name;
    const std::optional<int> index = index_of(name);
    if (layer.empty() || !index) return fault(inner, "is not a layer's parameter");
    SPEEDO_TRY(check_number(inner, ++parameters_, kHdf5ParametersMax, "parameters"));
    while (target.blobs_size() <= *index) target.add_blobs();
    caffe::BlobProto& blob = *target.mutable_blobs(*index);
    SPEEDO_TRY(count(inner));
    SPEEDO_TRY(read_blob(file_, inner, false, blob));
    const std::string diff = "/diff/" + layer + "/" + name;
    if (!file_.has(diff)) return {};
    SPEEDO_TRY(count(diff));
    return read_blob(file_, diff, true, blob);
  }

  // All parameters together must fit the memory, too.
  Result<void> count(const std::string& path) {
    SPEEDO_ASSIGN(const std::vector<std::int64_t> dims, file_.dims(path));
    const std::uint64_t bytes = array_bytes(dims, sizeof(float));
    if (__builtin_add_overflow(bytes_, bytes, &bytes_)) bytes_ = UINT64_MAX;
    return check_memory(fmt::format("the model in HDF5 file '{}'", file_.file_name()), bytes_);
  }

  const Hdf5Reader& file_;
  caffe::NetParameter net_;
  int groups_ = 0, parameters_ = 0;
  std::uint64_t bytes_ = 0;
};

Result<std::vector<float>> values_of(const caffe::BlobProto& blob, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  SPEEDO_TRY(read_values(blob, values));
  return values;
}

Result<void> write_blob(Hdf5Writer& file, const std::string& path, const caffe::BlobProto& blob) {
  SPEEDO_ASSIGN(const Shape shape, filled_shape_of(blob));
  SPEEDO_ASSIGN(const std::vector<float> values, values_of(blob, shape));
  return file.add_floats(path, dims_of(shape), values);
}

Result<void> write_diff(Hdf5Writer& file, const std::string& path, const caffe::BlobProto& blob) {
  SPEEDO_ASSIGN(const Shape shape, shape_of(blob));
  std::vector<float> values(blob.diff().begin(), blob.diff().end());
  if (blob.double_diff_size() > 0) {
    values.assign(blob.double_diff().begin(), blob.double_diff().end());
  }
  if (static_cast<std::int64_t>(values.size()) != shape.count()) {
    return Error{ErrorCode::kData, fmt::format("gradient '{}' has {} values, its shape needs {}",
                                               path, values.size(), shape.count())};
  }
  return file.add_floats(path, dims_of(shape), values);
}

bool has_diff(const caffe::NetParameter& net) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    for (const caffe::BlobProto& blob : layer.blobs()) {
      if (blob.diff_size() > 0 || blob.double_diff_size() > 0) return true;
    }
  }
  return false;
}

// A number that counts steps, as a SolverState holds it.
Result<int> read_count(const Hdf5Reader& file, const std::string& path) {
  SPEEDO_ASSIGN(const std::int64_t value, file.read_integer(path));
  if (value >= 0 && value <= INT_MAX) return static_cast<int>(value);
  return Error{ErrorCode::kData, fmt::format("HDF5 file '{}': '{}' is {}, which counts no steps "
                                             "(0 to {})",
                                             file.file_name(), path, value, INT_MAX)};
}

// True if an earlier layer owns this parameter; notes the name otherwise.
bool owned_elsewhere(const caffe::LayerParameter& layer, int index, std::set<std::string>& seen) {
  if (index >= layer.param_size() || layer.param(index).name().empty()) return false;
  return !seen.insert(layer.param(index).name()).second;
}

}  // namespace

Result<caffe::NetParameter> read_model_hdf5(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const Hdf5Reader file, Hdf5Reader::open(path));
  if (!file.has("/data") || file.is_dataset("/data")) {
    SPEEDO_TRY(file.status());
    return Error{
        ErrorCode::kData,
        fmt::format("HDF5 file '{}' holds no weights: it has no group '/data'", path.string())};
  }
  ModelReader reader(file);
  SPEEDO_TRY(reader.read("/data", "", 0));
  SPEEDO_TRY(file.status());
  return reader.take();
}

Result<void> write_model_hdf5(const std::filesystem::path& path, const caffe::NetParameter& net) {
  std::vector<Hdf5Layer> layers;
  for (const caffe::LayerParameter& layer : net.layer()) {
    layers.push_back({layer.name(), layer.blobs_size()});
  }
  const Hdf5Names names(layers);
  if (names.first_bad()) {
    return Error{ErrorCode::kConfig,
                 fmt::format("HDF5 cannot keep the parameters of a layer named '{}' beside those "
                             "of the others: rename it, or write another format",
                             *names.first_bad())};
  }
  SPEEDO_ASSIGN(Hdf5Writer file, Hdf5Writer::create(path));
  SPEEDO_TRY(file.add_group("/data"));
  const bool diffs = has_diff(net);
  if (diffs) SPEEDO_TRY(file.add_group("/diff"));
  std::set<std::string> seen;
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (!names.has_group(layer.name())) continue;
    SPEEDO_TRY(file.add_group("/data/" + layer.name()));
    if (diffs) SPEEDO_TRY(file.add_group("/diff/" + layer.name()));
    for (int index = 0; index < layer.blobs_size(); ++index) {
      const std::string place = fmt::format("{}/{}", layer.name(), index);
      const caffe::BlobProto& blob = layer.blobs(index);
      if (!owned_elsewhere(layer, index, seen))
        SPEEDO_TRY(write_blob(file, "/data/" + place, blob));
      if (diffs) SPEEDO_TRY(write_diff(file, "/diff/" + place, blob));
    }
  }
  return file.commit();
}

Result<caffe::SolverState> read_solver_state_hdf5(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const Hdf5Reader file, Hdf5Reader::open(path));
  caffe::SolverState state;
  SPEEDO_ASSIGN(const int iteration, read_count(file, "/iter"));
  state.set_iter(iteration);
  if (file.has("/learned_net")) {
    SPEEDO_ASSIGN(std::string learned_net, file.read_string("/learned_net"));
    state.set_learned_net(std::move(learned_net));
  }
  SPEEDO_ASSIGN(const int step, read_count(file, "/current_step"));
  state.set_current_step(step);
  SPEEDO_ASSIGN(const std::vector<std::string> names, file.children("/history"));
  for (std::size_t index = 0; index < names.size(); ++index) {
    const std::string place = fmt::format("/history/{}", index);
    if (!file.is_dataset(place)) {
      SPEEDO_TRY(file.status());
      return Error{ErrorCode::kData,
                   fmt::format("HDF5 file '{}': '{}' is missing, though there are "
                               "{} histories",
                               path.string(), place, names.size())};
    }
    SPEEDO_TRY(read_blob(file, place, false, *state.add_history()));
  }
  SPEEDO_TRY(file.status());
  return state;
}

Result<void> write_solver_state_hdf5(const std::filesystem::path& path,
                                     const caffe::SolverState& state) {
  SPEEDO_ASSIGN(Hdf5Writer file, Hdf5Writer::create(path));
  const int iteration = state.iter(), step = state.current_step();
  SPEEDO_TRY(file.add_integers("/iter", std::span(&iteration, 1)));
  SPEEDO_TRY(file.add_string("/learned_net", state.learned_net()));
  SPEEDO_TRY(file.add_integers("/current_step", std::span(&step, 1)));
  SPEEDO_TRY(file.add_group("/history"));
  for (int index = 0; index < state.history_size(); ++index) {
    SPEEDO_TRY(write_blob(file, fmt::format("/history/{}", index), state.history(index)));
  }
  return file.commit();
}

}  // namespace speedo
