#include "data/sink_factory.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/output_root.hpp"
#include "caffe.pb.h"
#include "data/hdf5/hdf5_batch_sink.hpp"

namespace speedo {

namespace {

class FileSinkFactory : public SinkFactory {
 public:
  Result<std::unique_ptr<BatchSink>> open(const caffe::LayerParameter& layer,
                                          std::span<const Shape> shapes) override {
    const std::string& name = layer.hdf5_output_param().file_name();
    if (layer.type() != "HDF5Output") {
      return Error{ErrorCode::kConfig, fmt::format("layer type {} writes no file", layer.type())};
    }
    if (name.empty()) return Error{ErrorCode::kConfig, "hdf5_output_param has no file_name"};
    SPEEDO_TRY(check_output(name));
    SPEEDO_ASSIGN(PathClaim claim, PathClaim::take(open_, name));
    return Hdf5BatchSink::create(name, std::move(claim), shapes);
  }

 private:
  const std::shared_ptr<OpenPaths> open_ = std::make_shared<OpenPaths>();
};

}  // namespace

std::unique_ptr<SinkFactory> make_sink_factory() { return std::make_unique<FileSinkFactory>(); }

}  // namespace speedo
