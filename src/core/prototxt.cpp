#include "core/prototxt.hpp"

#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <speedo/base/file.hpp>
#include <speedo/base/limits.hpp>

#include "core/upgrade.hpp"

namespace speedo {
namespace {

namespace protobuf = google::protobuf;

// Keeps the first error: later ones usually follow from it.
class FirstError : public protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& name) : name_(name) {}

  void AddError(int line, protobuf::io::ColumnNumber column, const std::string& what) override {
    if (!message_.empty()) {
      return;
    }
    const bool at_end = what.ends_with("got: ");
    message_ = line < 0 ? fmt::format("{}: {}", name_, what)
                        : fmt::format("{}:{}:{}: {}", name_, line + 1, column + 1,
                                      at_end ? "the file ends here, but a '}' is missing" : what);
  }

  const std::string& message() const { return message_; }

 private:
  const std::string& name_;
  std::string message_;
};

Result<std::string> read_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{ErrorCode::kConfig, fmt::format("{}: is a folder, not a prototxt", path.string())};
  }
  auto text = read_file(path, kPrototxtBytesMax);
  // Whatever is wrong with the file, it is the configuration that names it.
  if (!text) return Error{ErrorCode::kConfig, text.error().message};
  return text;
}

void set_default_snapshot_prefix(const std::filesystem::path& path,
                                 caffe::SolverParameter& solver) {
  std::error_code ignored;
  if (!solver.has_snapshot_prefix()) {
    solver.set_snapshot_prefix(std::filesystem::path(path).replace_extension().string());
  } else if (std::filesystem::is_directory(solver.snapshot_prefix(), ignored)) {
    solver.set_snapshot_prefix(
        (std::filesystem::path(solver.snapshot_prefix()) / path.stem()).string());
  }
}

}  // namespace

Result<void> parse_prototxt(const std::string& text, const std::string& name,
                            protobuf::Message& target) {
  if (text.empty()) {
    return Error{ErrorCode::kConfig, fmt::format("{}: is empty", name)};
  }
  // The parser takes its input's size as an int.
  if (text.size() > kPrototxtBytesMax) {
    return Error{ErrorCode::kConfig,
                 fmt::format("{}: {} bytes are too many for a prototxt (at most {})", name,
                             text.size(), kPrototxtBytesMax)};
  }
  FirstError errors(name);
  protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kPrototxtDepthMax);
  if (!parser.ParseFromString(text, &target)) {
    return Error{ErrorCode::kConfig, errors.message().empty()
                                         ? fmt::format("{}: cannot be parsed", name)
                                         : errors.message()};
  }
  return {};
}

std::string to_prototxt(const protobuf::Message& message) {
  std::string text;
  protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

Result<caffe::NetParameter> parse_net_prototxt(const std::string& text, const std::string& name) {
  caffe::NetParameter net;
  SPEEDO_TRY(parse_prototxt(text, name, net));
  if (auto upgraded = upgrade_net(net); !upgraded) {
    return Error{upgraded.error().code, fmt::format("{}: {}", name, upgraded.error().message)};
  }
  return net;
}

Result<caffe::SolverParameter> parse_solver_prototxt(const std::string& text,
                                                     const std::string& name) {
  caffe::SolverParameter solver;
  SPEEDO_TRY(parse_prototxt(text, name, solver));
  if (auto upgraded = upgrade_solver(solver); !upgraded) {
    return Error{upgraded.error().code, fmt::format("{}: {}", name, upgraded.error().message)};
  }
  return solver;
}

Result<caffe::NetParameter> read_net_prototxt(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const std::string text, read_text(path));
  return parse_net_prototxt(text, path.string());
}

Result<caffe::SolverParameter> read_solver_prototxt(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const std::string text, read_text(path));
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver_prototxt(text, path.string()));
  set_default_snapshot_prefix(path, solver);
  return solver;
}

}  // namespace speedo
