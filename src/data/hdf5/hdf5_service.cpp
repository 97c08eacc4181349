#include "data/hdf5/hdf5_service.hpp"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/text_of.hpp"
#include "data/hdf5/hdf5_descriptor.hpp"
#include "data/hdf5/hdf5_handle.hpp"
#include "data/hdf5/hdf5_library.hpp"
#include "data/hdf5/hdf5_task.hpp"

namespace speedo {

namespace {

Result<HelperAnswer> number(std::int64_t value) { return HelperAnswer{{value}, 0}; }

Result<HelperAnswer> yes_or_no(const Result<bool>& asked) {
  if (!asked) return asked.error();
  return number(*asked ? 1 : 0);
}

Result<HelperAnswer> bytes(const void* data, std::size_t count, std::span<std::byte> output) {
  if (count > output.size()) return Error{ErrorCode::kFull, "no room"};
  if (count > 0) std::memcpy(output.data(), data, count);
  return HelperAnswer{{}, count};
}

Result<HelperAnswer> text(const Result<std::string>& read, std::span<std::byte> output) {
  if (!read) return read.error();
  return bytes(read->data(), read->size(), output);
}

Result<HelperAnswer> children(Hdf5Access& file, const std::string& group,
                              std::span<std::byte> output) {
  SPEEDO_ASSIGN(const std::vector<std::string> names, file.children(group));
  std::string all;
  for (const std::string& name : names) all.append(name).push_back('\0');
  return bytes(all.data(), all.size(), output);
}

Result<HelperAnswer> dims(Hdf5Access& file, const std::string& dataset,
                          std::span<std::byte> output) {
  SPEEDO_ASSIGN(const std::vector<std::int64_t> extents, file.dims(dataset));
  return bytes(extents.data(), extents.size() * sizeof(extents[0]), output);
}

Result<HelperAnswer> read_rows(Hdf5Access& file, const std::string& dataset,
                               const HelperNumbers& numbers, std::span<std::byte> output) {
  const auto values = static_cast<std::size_t>(numbers[2]);
  if (values > output.size() / sizeof(float)) return Error{ErrorCode::kFull, "no room"};
  const std::span<float> target(reinterpret_cast<float*>(output.data()), values);
  SPEEDO_TRY(file.read_rows(dataset, numbers[0], numbers[1], target));
  return HelperAnswer{{}, values * sizeof(float)};
}

}  // namespace

void Hdf5Service::prepare() {
  const Hdf5Lock lock;
  H5open();
  H5PLset_loading_state(0);  // filters from files
  prepare_hdf5_descriptors();
}

Result<HelperAnswer> Hdf5Service::open(HelperTask& task) {
  file_.reset();
  SPEEDO_ASSIGN(file_, Hdf5Library::open_descriptor(Descriptor(std::exchange(task.file, -1)),
                                                    static_cast<std::uint64_t>(task.numbers[0]),
                                                    std::string(text_of(task.input))));
  return HelperAnswer{};
}

Result<HelperAnswer> Hdf5Service::serve(HelperTask& task, std::span<std::byte> output) {
  const auto kind = static_cast<Hdf5Task>(task.kind);
  if (kind == Hdf5Task::kOpen) return open(task);
  if (file_ == nullptr) return Error{ErrorCode::kData, "no HDF5 file is open"};
  const std::string object(text_of(task.input));
  switch (kind) {
    case Hdf5Task::kHas:
      return yes_or_no(file_->has(object));
    case Hdf5Task::kIsDataset:
      return yes_or_no(file_->is_dataset(object));
    case Hdf5Task::kChildren:
      return children(*file_, object, output);
    case Hdf5Task::kDims:
      return dims(*file_, object, output);
    case Hdf5Task::kCheckSize:
      SPEEDO_TRY(file_->check_size(object));
      return HelperAnswer{};
    case Hdf5Task::kReadRows:
      return read_rows(*file_, object, task.numbers, output);
    case Hdf5Task::kReadInteger: {
      SPEEDO_ASSIGN(const std::int64_t value, file_->read_integer(object));
      return number(value);
    }
    case Hdf5Task::kReadString:
      return text(file_->read_string(object), output);
    case Hdf5Task::kOpen:
      break;
  }
  return Error{ErrorCode::kUnsupported, "no such task"};
}

}  // namespace speedo
