#pragma once

#include <google/protobuf/message.h>

namespace speedo {

// Every file that a solver, a net, or a layer of one, names becomes what people may see of its name
// (shown_name): for logs, and for files of weights, whose nets are not what data is read by.
void show_names(google::protobuf::Message& message);

}  // namespace speedo
