#include "data/model_files.hpp"

#include <array>
#include <cstring>

#include "core/weight_file.hpp"
#include "data/hdf5/model_hdf5.hpp"
#include "data/random_file.hpp"

namespace speedo {

namespace {

// An HDF5 file begins with these eight bytes (Caffe writes no user block before them).
bool is_hdf5(const std::filesystem::path& path) {
  constexpr unsigned char kSignature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  const auto file = RandomFile::open(path);
  std::array<std::byte, sizeof kSignature> bytes;
  return file && file->holds(0, bytes.size()) && file->read(0, bytes) &&
         std::memcmp(bytes.data(), kSignature, sizeof kSignature) == 0;
}

bool wants_hdf5(const std::filesystem::path& path) {
  return is_hdf5(path) || path.extension() == ".h5";
}

}  // namespace

Result<caffe::NetParameter> read_model(const std::filesystem::path& path) {
  return wants_hdf5(path) ? read_model_hdf5(path) : read_caffemodel(path);
}

Result<void> write_model(const std::filesystem::path& path, const caffe::NetParameter& net,
                         caffe::SolverParameter::SnapshotFormat format) {
  if (format == caffe::SolverParameter::HDF5) return write_model_hdf5(path, net);
  return write_caffemodel(path, net);
}

Result<caffe::SolverState> read_solver_state(const std::filesystem::path& path) {
  return wants_hdf5(path) ? read_solver_state_hdf5(path) : read_solverstate(path);
}

Result<void> write_solver_state(const std::filesystem::path& path, const caffe::SolverState& state,
                                caffe::SolverParameter::SnapshotFormat format) {
  if (format == caffe::SolverParameter::HDF5) return write_solver_state_hdf5(path, state);
  return write_solverstate(path, state);
}

}  // namespace speedo
