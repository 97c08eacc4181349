#include "core/weight_file.hpp"

#include <climits>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <speedo/base/file.hpp>
#include <speedo/base/limits.hpp>

#include "core/upgrade/upgrade.hpp"

namespace speedo {
namespace {

namespace protobuf = google::protobuf;

Error bad_file(const std::filesystem::path& path, const std::string& what) {
  return {ErrorCode::kData, fmt::format("{}: {}", path.string(), what)};
}

Result<void> read_binary(const std::filesystem::path& path, const char* kind,
                         protobuf::Message& target) {
  SPEEDO_ASSIGN(const std::string bytes, read_file(path, kProtobufBytesMax));
  if (bytes.empty()) {
    return bad_file(path, fmt::format("is empty, not a {}", kind));
  }
  protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                       static_cast<int>(bytes.size()));
  input.SetTotalBytesLimit(INT_MAX);
  if (!target.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    return bad_file(path, fmt::format("is not a {}, or is cut short or damaged", kind));
  }
  return {};
}

Result<void> write_binary(const std::filesystem::path& path, const protobuf::Message& message) {
  // Serialising a longer message would fail halfway.
  if (message.ByteSizeLong() > kProtobufBytesMax) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("{}: {} bytes are more than the format can hold (2 GiB); use "
                             "snapshot_format: HDF5",
                             path.string(), message.ByteSizeLong())};
  }
  const std::string bytes = message.SerializeAsString();
  return write_file_atomically(path, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace

Result<caffe::NetParameter> read_caffemodel(const std::filesystem::path& path) {
  caffe::NetParameter net;
  SPEEDO_TRY(read_binary(path, "caffemodel", net));
  // Other protobuf files can parse by chance; one without a layer is no model.
  if (net.layer_size() == 0 && net.layers_size() == 0) {
    return bad_file(path, "is not a caffemodel: it has no layers");
  }
  if (auto upgraded = upgrade_net(net); !upgraded) {
    return bad_file(path, upgraded.error().message);
  }
  return net;
}

Result<void> write_caffemodel(const std::filesystem::path& path, const caffe::NetParameter& net) {
  return write_binary(path, net);
}

Result<caffe::SolverState> read_solverstate(const std::filesystem::path& path) {
  caffe::SolverState state;
  SPEEDO_TRY(read_binary(path, "solverstate", state));
  if (!state.has_iter()) return bad_file(path, "is not a solverstate: it has no iteration");
  if (state.iter() < 0 || state.current_step() < 0) {
    return bad_file(path, fmt::format("is damaged: iteration {} and learning rate step {} count no "
                                      "steps",
                                      state.iter(), state.current_step()));
  }
  return state;
}

Result<void> write_solverstate(const std::filesystem::path& path, const caffe::SolverState& state) {
  return write_binary(path, state);
}

Result<caffe::BlobProto> read_blob_file(const std::filesystem::path& path) {
  caffe::BlobProto blob;
  SPEEDO_TRY(read_binary(path, "binaryproto", blob));
  if (blob.data_size() == 0 && blob.double_data_size() == 0) {
    return bad_file(path, "is not a binaryproto: it has no values");
  }
  return blob;
}

Result<void> write_blob_file(const std::filesystem::path& path, const caffe::BlobProto& blob) {
  return write_binary(path, blob);
}

}  // namespace speedo
