// A file of HDFS, by WebHDFS (HTTP):
//
//   GET /webhdfs/v1/PATH?op=GETFILESTATUS                  the NameNode: {"FileStatus": {...}}
//   GET /webhdfs/v1/PATH?op=OPEN&offset=A&length=N         it redirects to a DataNode, which sends
//                                                          the bytes with status 200

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text_of.hpp"
#include "remote/origin.hpp"

namespace speedo {

namespace {

constexpr std::size_t kStatusBytesMax = std::size_t{64} << 10U;
constexpr const char* kWebPort = ":9870";

// The port follows the last colon, unless that is within the brackets of an IPv6 address.
std::string with_port(const std::string& host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  return has_port ? host : host + kWebPort;
}

class HdfsOrigin : public Origin {
 public:
  HdfsOrigin(RemoteUri uri, const std::string& user) : uri_(std::move(uri)) {
    url_ = fmt::format("http://{}/webhdfs/v1{}?", with_port(uri_.host), percent_encoded(uri_.path));
    if (!user.empty()) url_ += "user.name=" + percent_encoded(user) + "&";
  }

  const RemoteUri& uri() const override { return uri_; }

  Result<FileFacts> look(HttpClient& client, RemoteAnswer& answer) const override {
    std::string body;
    SPEEDO_TRY(
        client.perform({.url = url_ + "op=GETFILESTATUS", .shown = uri_.shown()}, answer,
                       [&](const RemoteAnswer&, std::span<const std::byte> piece) -> Result<void> {
                         body += text_of(piece);
                         if (body.size() > kStatusBytesMax) return no_sense("is too long");
                         return {};
                       }));
    if (!answer.is_success()) return status_error(uri_, answer);
    return read_status(body);
  }

  HttpRequest request(ByteSpan span, const FileFacts&) const override {
    return {.url = fmt::format("{}op=OPEN&offset={}&length={}", url_, span.begin, span.bytes()),
            .shown = uri_.shown()};
  }

  Result<void> check(const RemoteAnswer& answer, ByteSpan span, const FileFacts&) const override {
    if (answer.status == 200 && answer.length().value_or(span.bytes()) == span.bytes()) return {};
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("'{}': {} bytes were asked for, but the server answers {} with {}",
                    uri_.shown(), span.bytes(), answer.status, answer.header("content-length"))};
  }

 private:
  Error no_sense(const std::string& what) const {
    return {ErrorCode::kCorrupt,
            fmt::format("'{}': what the server says of the file {}: is it WebHDFS?", uri_.shown(),
                        what)};
  }

  Result<FileFacts> read_status(const std::string& body) const {
    const auto json = nlohmann::json::parse(body, nullptr, false);
    if (!json.is_object() || !json.contains("FileStatus")) return no_sense("has no FileStatus");
    const auto& status = json["FileStatus"];
    const auto number = [&](const char* name) -> std::optional<std::uint64_t> {
      if (!status.is_object() || !status.contains(name)) return std::nullopt;
      if (!status[name].is_number_unsigned()) return std::nullopt;
      return status[name].get<std::uint64_t>();
    };
    const auto bytes = number("length");
    const bool is_typed =
        status.is_object() && status.contains("type") && status["type"].is_string();
    if (!bytes || !is_typed) return no_sense("has no length or type");
    if (status["type"] != "FILE") {
      return Error{ErrorCode::kData,
                   fmt::format("'{}' is a folder, but a file is needed", uri_.shown())};
    }
    return FileFacts{.bytes = *bytes,
                     .version = fmt::format("{}-{}", number("modificationTime").value_or(0),
                                            number("fileId").value_or(0)),
                     .has_ranges = true,
                     .is_version_in_answers = false};
  }

  const RemoteUri uri_;
  std::string url_;
};

}  // namespace

std::unique_ptr<Origin> make_hdfs_origin(const RemoteUri& uri, const std::string& user) {
  return std::make_unique<HdfsOrigin>(uri, user);
}

}  // namespace speedo
