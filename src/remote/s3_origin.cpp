// An object of S3, or of a server that speaks its protocol: a GET that is signed for a user.
//
// A server that is named (AWS_ENDPOINT_URL) has the bucket in the path; AWS has it in the host,
// except for one with dots, which no certificate fits.

#include <utility>

#include <fmt/format.h>

#include "remote/origin.hpp"

namespace speedo {

namespace {

constexpr std::size_t kMd5Digits = 32;

std::string url_of(const RemoteUri& uri, const AwsSettings& settings) {
  const std::string key = percent_encoded(uri.path);
  if (!settings.endpoint.empty()) return settings.endpoint + "/" + uri.host + key;
  const std::string amazon = "s3." + settings.region + ".amazonaws.com";
  if (uri.host.find('.') != std::string::npos) return "https://" + amazon + "/" + uri.host + key;
  return "https://" + uri.host + "." + amazon + key;
}

// The ETag of an object that was put in one piece, and not encrypted with a key of its own, is its
// MD5.
bool is_md5(const std::string& tag, const RemoteAnswer& answer) {
  const std::string encryption = answer.header("x-amz-server-side-encryption");
  return tag.size() == kMd5Digits &&
         tag.find_first_not_of("0123456789abcdef") == std::string::npos &&
         (encryption.empty() || encryption == "AES256") &&
         answer.header("x-amz-server-side-encryption-customer-algorithm").empty();
}

// A digest of several parts' digests ends in "-N" and is passed over.
std::vector<PromisedDigest> promises_in(const RemoteAnswer& answer) {
  std::vector<PromisedDigest> digests;
  for (const auto& [kind, name] : {std::pair(DigestKind::kSha256, "x-amz-checksum-sha256"),
                                   std::pair(DigestKind::kSha1, "x-amz-checksum-sha1")}) {
    if (auto hex = digest_in_base64(kind, answer.header(name))) {
      digests.push_back({kind, *std::move(hex), name});
    }
  }
  std::string tag = answer.header("etag");
  std::erase(tag, '"');
  if (is_md5(tag, answer)) digests.push_back({DigestKind::kMd5, tag, "the ETag"});
  return digests;
}

class S3Origin : public Origin {
 public:
  S3Origin(RemoteUri uri, const AwsSettings& settings)
      : uri_(std::move(uri)), url_(url_of(uri_, settings)), signer_(settings.identity) {}

  const RemoteUri& uri() const override { return uri_; }

  Result<FileFacts> look(HttpClient& client, RemoteAnswer& answer) const override {
    HttpRequest head = plain_request();
    head.only_head = true;
    head.headers.emplace_back("x-amz-checksum-mode: ENABLED");
    SPEEDO_TRY(client.perform(head, answer));
    if (!answer.is_success()) return status_error(uri_, answer);
    if (!answer.length()) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("'{}': the server does not say how many bytes it has", uri_.shown())};
    }
    return FileFacts{.bytes = *answer.length(),
                     .version = version_of(answer),
                     .has_ranges = true,
                     .digests = promises_in(answer)};
  }

  HttpRequest request(ByteSpan span, const FileFacts&) const override {
    HttpRequest request = plain_request();
    if (span.bytes() > 0) request.range = range_text(span);
    return request;
  }

  Result<void> check(const RemoteAnswer& answer, ByteSpan span,
                     const FileFacts& facts) const override {
    return check_range(uri_, answer, span, facts);
  }

 private:
  // What is signed is for one host.
  HttpRequest plain_request() const {
    return {.url = url_, .shown = uri_.shown(), .signed_by = signer_, .follows_redirects = false};
  }

  const RemoteUri uri_;
  const std::string url_;
  const std::optional<AwsIdentity> signer_;
};

}  // namespace

std::unique_ptr<Origin> make_s3_origin(const RemoteUri& uri, const AwsSettings& settings) {
  return std::make_unique<S3Origin>(uri, settings);
}

}  // namespace speedo
