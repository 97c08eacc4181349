#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <speedo/core/net.hpp>

#include "formats/deploy_net.hpp"

namespace speedo {

struct DeployRequest {
  std::filesystem::path model;  // prototxt
  DeployOptions options;        // its shapes come from what follows
  // "N,C,H,W" of the only input, or "BLOB=N,C,H,W;..."; empty: as the net or its data have them.
  std::string shapes;
  std::optional<std::int64_t> batch;  // first extent of every input, whatever else says
};

// A prototxt's net as deploy_net() makes it. Where a data layer's shape is asked for and not given,
// its source is opened as the TEST net of `net_options` opens it. Errors: kConfig, kUsage for bad
// `shapes`; those of the data.
Result<caffe::NetParameter> read_deploy_net(const DeployRequest& request,
                                            const NetOptions& net_options);

// The prototxt's net as it is there, in the newest form, of both phases. Error: kConfig.
Result<caffe::NetParameter> read_whole_net(const DeployRequest& request);

// The whole net in a phase, in the request's level and stages, with nothing allocated. Opens its
// data. Errors: those of Net::create().
Result<std::unique_ptr<Net>> plan_whole_net(const caffe::NetParameter& net, Phase phase,
                                            const DeployRequest& request, NetOptions options);

// Builds it in the TEST phase, to be given weights, after a look at the memory that it takes.
// Errors: kConfig, also if that is more than there is; kFull.
Result<std::unique_ptr<Net>> build_deploy_net(const caffe::NetParameter& deployed,
                                              NetOptions options);

}  // namespace speedo
