#include "core/prototxt.hpp"

#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <speedo/base/file.hpp>
#include <speedo/base/limits.hpp>

#include "base/byte_order_mark.hpp"
#include "core/prototxt_character.hpp"
#include "core/upgrade/upgrade.hpp"

namespace speedo {
namespace {

namespace protobuf = google::protobuf;

// Keeps the first error: later ones usually follow from it.
class FirstError : public protobuf::io::ErrorCollector {
 public:
  FirstError(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  void AddError(int line, protobuf::io::ColumnNumber column, const std::string& what) override {
    if (!message_.empty()) {
      return;
    }
    std::string text = what;
    if (what.ends_with("got: ")) text = "the file ends here, but a '}' is missing";
    if (what.starts_with("Interpreting non ascii")) {
      text = describe_character(text_.substr(text_offset(text_, line, column)));
    }
    message_ = line < 0 ? fmt::format("{}: {}", name_, text)
                        : fmt::format("{}:{}:{}: {}", name_, line + 1, column + 1, text);
  }

  const std::string& message() const { return message_; }

 private:
  const std::string& name_;
  std::string_view text_;
  std::string message_;
};

Result<std::string> read_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{ErrorCode::kConfig, fmt::format("{}: is a folder, not a prototxt", path.string())};
  }
  auto text = read_file(path, kPrototxtBytesMax);
  if (text || text.error().code == ErrorCode::kRefused) return text;
  // Whatever else is wrong with the file, it is the configuration that names it.
  return Error{ErrorCode::kConfig, text.error().message};
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

bool parse_text(std::string_view text, protobuf::io::ErrorCollector& errors,
                protobuf::Message& target) {
  protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kPrototxtDepthMax);
  protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  return parser.Parse(&stream, &target);
}

// The error of a text that is not what is wanted, with the hint if it is an `Other`.
template <class Other>
Error with_hint(Error error, const std::string& text, const char* hint) {
  Other other;
  if (parse_prototxt(text, "", other)) error.message += hint;
  return error;
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
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return Error{ErrorCode::kConfig, fmt::format("{}: is UTF-16; save it as UTF-8", name)};
  }
  const std::string_view content = without_byte_order_mark(text);
  FirstError errors(name, content);
  if (!parse_text(content, errors, target)) {
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

std::string message_text(const google::protobuf::Message& message) {
  std::string text = message.DebugString();
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<caffe::NetParameter> parse_net_prototxt(const std::string& text, const std::string& name) {
  caffe::NetParameter net;
  if (auto parsed = parse_prototxt(text, name, net); !parsed) {
    return with_hint<caffe::SolverParameter>(
        std::move(parsed).error(), text,
        " (the file is a solver, where a net is wanted: are the two swapped?)");
  }
  if (auto upgraded = upgrade_net(net); !upgraded) {
    return Error{upgraded.error().code, fmt::format("{}: {}", name, upgraded.error().message)};
  }
  return net;
}

Result<caffe::SolverParameter> parse_solver_prototxt(const std::string& text,
                                                     const std::string& name) {
  caffe::SolverParameter solver;
  if (auto parsed = parse_prototxt(text, name, solver); !parsed) {
    return with_hint<caffe::NetParameter>(
        std::move(parsed).error(), text,
        " (the file is a net, where a solver is wanted: are the two swapped?)");
  }
  if (auto upgraded = upgrade_solver(solver); !upgraded) {
    return Error{upgraded.error().code, fmt::format("{}: {}", name, upgraded.error().message)};
  }
  return solver;
}

Result<caffe::NetParameter> read_net_prototxt(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const std::string text, read_text(path));
  return parse_net_prototxt(text, path.string());
}

Result<caffe::SolverParameter> read_solver_prototxt(const std::filesystem::path& path,
                                                    const std::filesystem::path& named) {
  SPEEDO_ASSIGN(const std::string text, read_text(path));
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver_prototxt(text, path.string()));
  set_default_snapshot_prefix(named, solver);
  return solver;
}

}  // namespace speedo
