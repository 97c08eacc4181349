#pragma once

#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Text-format nets and solvers, old forms upgraded (upgrade/). Errors of syntax, of unknown
// fields and enum values and of types: kConfig, "FILE:LINE:COLUMN: what", counted from 1; so are a
// missing and an empty file. kRefused: the file may not be read. A byte order mark is passed over.
Result<caffe::NetParameter> read_net_prototxt(const std::filesystem::path& path);
// Also gives snapshot_prefix as Caffe does: the solver's path without extension if there is none,
// and a file name within it if it is a folder. `named`: stands for the path there, of a copy.
Result<caffe::SolverParameter> read_solver_prototxt(const std::filesystem::path& path,
                                                    const std::filesystem::path& named);
inline Result<caffe::SolverParameter> read_solver_prototxt(const std::filesystem::path& path) {
  return read_solver_prototxt(path, path);
}

// The same from memory; `name` stands for the file in errors.
Result<caffe::NetParameter> parse_net_prototxt(const std::string& text, const std::string& name);
Result<caffe::SolverParameter> parse_solver_prototxt(const std::string& text,
                                                     const std::string& name);

// Any message as it stands, not upgraded.
Result<void> parse_prototxt(const std::string& text, const std::string& name,
                            google::protobuf::Message& target);
std::string to_prototxt(const google::protobuf::Message& message);
// As Caffe's log shows it, without the end of the last line.
std::string message_text(const google::protobuf::Message& message);

}  // namespace speedo
