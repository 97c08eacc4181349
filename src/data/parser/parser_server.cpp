#include "data/parser/parser_server.hpp"

#include "data/claimed_size.hpp"
#include "data/image/image_task.hpp"

namespace speedo {

void ParserServer::prepare() {
  process_memory();  // which is looked up in files
  Hdf5Service::prepare();
}

Result<HelperAnswer> ParserServer::serve(HelperTask& task, std::span<std::byte> output) {
  if (task.kind == kImageTask) return serve_image(task, output);
  return hdf5_.serve(task, output);
}

}  // namespace speedo
