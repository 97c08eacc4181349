#pragma once

#include "data/hdf5/hdf5_service.hpp"
#include "sandbox/helper_server.hpp"

namespace speedo {

// What speedo-parser does: decodes images, and reads one HDF5 file at a time.
class ParserServer : public HelperServer {
 public:
  void prepare() override;
  Result<HelperAnswer> serve(HelperTask& task, std::span<std::byte> output) override;

 private:
  Hdf5Service hdf5_;
};

}  // namespace speedo
