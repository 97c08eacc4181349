#pragma once

#include <memory>

#include <speedo/core/parameter_arena.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/merger.hpp>

#include "caffe.pb.h"
#include "train/merge/merger_engine.hpp"
#include "train/parts/part_clip.hpp"

namespace speedo {

// What the merger of a part is made of.
struct PartSetup {
  PartClip clip;
  MergerConfig config;     // of the job; its ahead_bytes_min is the whole model's
  ParameterLayout layout;  // of the whole model
  caffe::SolverParameter solver;
  std::shared_ptr<ParameterStore> store;  // fenced with the configuration's term
  MergerEngine::MakeBackend make_backend = {};
  // Whether parts have copies on their neighbors' servers, where there are several.
  bool has_copies = true;
  bool keeps_copies() const { return has_copies && store->parts() > 1; }
};

}  // namespace speedo
