#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "remote/aws_settings.hpp"
#include "remote/byte_digest.hpp"
#include "remote/byte_parts.hpp"
#include "remote/http_client.hpp"
#include "remote/remote_uri.hpp"

namespace speedo {

// What a server says of a file.
struct FileFacts {
  std::uint64_t bytes = 0;
  std::string version = {};  // changes with the file: an ETag or a time; empty: it does not say
  bool has_ranges = false;   // parts can be asked for
  bool is_version_in_answers = true;  // else only look() tells it
  std::vector<PromisedDigest> digests = {};
};

// Where a file comes from: how it is asked for, and what an answer must be.
// Thread safety: a constant.
class Origin {
 public:
  virtual ~Origin() = default;
  virtual const RemoteUri& uri() const = 0;

  // Asks the server about the file. Errors: those of HttpClient::perform(); kNotFound, kRefused,
  // kData by the answer's status; kCorrupt for an answer that makes no sense. `answer` is the last.
  virtual Result<FileFacts> look(HttpClient& client, RemoteAnswer& answer) const = 0;

  // The request for a span, or for the whole file if the server has no ranges.
  virtual HttpRequest request(ByteSpan span, const FileFacts& facts) const = 0;

  // Whether a successful answer is what was asked for. Errors: kCorrupt for other bytes than those
  // of the span; kMismatch if they are of another version of the file.
  virtual Result<void> check(const RemoteAnswer& answer, ByteSpan span,
                             const FileFacts& facts) const = 0;
};

std::unique_ptr<Origin> make_http_origin(const RemoteUri& uri);
std::unique_ptr<Origin> make_s3_origin(const RemoteUri& uri, const AwsSettings& settings);
// `user`: whom HDFS takes us for; empty: its default.
std::unique_ptr<Origin> make_hdfs_origin(const RemoteUri& uri, const std::string& user);

// What an answer that is no success means. Requires: !answer.is_success().
Error status_error(const RemoteUri& uri, const RemoteAnswer& answer);

// "100-199": the span as a request has it. Requires: it is not empty.
std::string range_text(ByteSpan span);

// How one range of HTTP is answered: 206 with the very range, of the version of the facts, or 200
// with the whole file if the server has no ranges.
Result<void> check_range(const RemoteUri& uri, const RemoteAnswer& answer, ByteSpan span,
                         const FileFacts& facts);

// ETag, else Last-Modified.
std::string version_of(const RemoteAnswer& answer);

}  // namespace speedo
