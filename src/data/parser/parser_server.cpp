#include "data/parser/parser_server.hpp"

#include <exception>
#include <new>
#include <string>

#include "data/claimed_size.hpp"
#include "data/image/image_task.hpp"

namespace speedo {

void ParserServer::prepare() {
  process_memory();  // which is looked up in files
  Hdf5Service::prepare();
}

Result<HelperAnswer> ParserServer::serve(HelperTask& task, std::span<std::byte> output) {
  try {
    if (task.kind == kImageTask) return serve_image(task, output);
    return hdf5_.serve(task, output);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kFull, "no memory"};
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::kData, std::string("cannot be read: ") + thrown.what()};
  }
}

}  // namespace speedo
