// Files of names, a line each: groups and hosts of a cluster, data of workers, images, windows,
// classes, tokens.
#include <sys/stat.h>

#include "caffe.pb.h"
#include "cli/data_map.hpp"
#include "cli/group_file.hpp"
#include "cli/hosts_file.hpp"
#include "data/image/image_list.hpp"
#include "data/image/window_file.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"
#include "gate/token_file.hpp"
#include "tools/class_labels.hpp"

namespace speedo::fuzz {
namespace {

void read_images(const std::string& path) {
  const auto list = ImageList::read(path);
  if (!list) return;
  for (std::int64_t i = 0; i < list->size(); ++i) {
    SPEEDO_ASSERT(!list->name(i).empty());
    static_cast<void>(list->place(i));
  }
  // No image of such a folder is there.
  ImageListSource images(*list, {.root = "/nonexistent/", .height = 2, .width = 2});
  Record record;
  SPEEDO_ASSERT(!images.read(0, record) && !images.read_image_file(0));
}

void read_map(const std::string& path) {
  const auto map = read_data_map(path);
  const auto source = map ? mapped_source(*map, "worker0") : Result<std::string>(map.error());
  if (!source) return;
  caffe::SolverParameter solver;
  SPEEDO_ASSERT(!set_train_source(*source, solver));
  caffe::LayerParameter& layer = *solver.mutable_net_param()->add_layer();
  layer.set_name("d");
  SPEEDO_ASSERT(!set_train_source(*source, solver));
  layer.mutable_window_data_param()->set_source("before");
  SPEEDO_ASSERT(set_train_source(*source, solver));
  SPEEDO_ASSERT(solver.net_param().layer(0).window_data_param().source() == *source);
}

void read_windows(const std::string& path) {
  const auto windows = WindowFile::read(path, caffe::WindowDataParameter());
  if (!windows) return;
  for (const auto* side : {&windows->foreground, &windows->background}) {
    for (const ImageWindow& each : *side) SPEEDO_ASSERT(each.image < windows->images.size());
  }
}

SPEEDO_FUZZ_TARGET(lists)(Bytes bytes) {
  Input input(bytes);
  const unsigned which = input.byte() % 7U;
  const MemoryFile file(input.left());
  const std::string path = file.path();
  if (which == 0) static_cast<void>(read_group_file(path));
  if (which == 1) static_cast<void>(read_hosts_file(path));
  if (which == 2) {
    read_map(path);
  }
  if (which == 3) read_images(path);
  if (which == 4) read_windows(path);
  if (which == 5) static_cast<void>(read_class_labels(path, 2));
  if (which == 6) {
    SPEEDO_ASSERT(::fchmod(file.descriptor(), 0600) == 0);
    static_cast<void>(read_token_file(path));
  }
}

}  // namespace
}  // namespace speedo::fuzz
