#pragma once

#include <set>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"

namespace speedo {

// What the files of weights that a net starts from do not give it. Weights go by layer name, so a
// wrong name, or a wrong file, changes nothing and is no error by itself.
class WeightSources {
 public:
  // `file`: how the user named it. Copies its weights into `net`, and warns of those that are not
  // finite. Errors: as copy_weights_from().
  Result<void> copy(const std::string& file, const caffe::NetParameter& weights, Net& net);

  // After the last file. Warns of the layers that stay as their fillers made them. Error kMismatch,
  // unless `may_be_none`: no layer was given anything, so that the files are of another net.
  Result<void> check(const Net& net, bool may_be_none) const;

 private:
  std::set<std::string> layers_;  // that have values in any of the files
  std::string files_;
};

// Warns, once, if `file` gives parameters of `net` values that are NaN or infinite.
void warn_if_not_finite(const std::string& file, const caffe::NetParameter& weights,
                        const Net& net);

}  // namespace speedo
