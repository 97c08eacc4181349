#pragma once

#include <string>
#include <vector>

#include <speedo/core/parameter_arena.hpp>

#include "caffe.pb.h"

// Caffe's lines of how a net is built, in its words and order, as far as they ask for no net. A
// layer that is expanded is one layer there. Caffe also logs the nets inside such layers, and the
// files of data layers; here these have no lines.
namespace speedo {

// "The NetState phase (0) differed from the phase (1) specified by a rule in layer data"
void log_rule_unmet(const std::string& why);
// "Initializing net from parameters: " and the filtered net, before Splits, without weights.
void log_parameters(const caffe::NetState& state, const caffe::NetParameter& net);
// Warnings, of a training net alone: a solver's other nets mostly have the same losses.
void log_changed_losses(const caffe::NetState& state, const std::vector<std::string>& lines);
// "Creating Layer ip1", "ip1 <- data", "ip1 -> ip1".
void log_creation(const caffe::LayerParameter& message);
// "Sharing parameters 'w' owned by layer 'ip1', param index 0"
void log_sharing(const std::string& parameter, const ParameterSlot& owner);

}  // namespace speedo
