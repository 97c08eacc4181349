#pragma once

#include <cstdint>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

enum class UriScheme : std::uint8_t { kHttp, kHttps, kS3, kHdfs };

// http(s)://HOST[:PORT]/PATH[?QUERY]   the path as it is sent, with %XX for other characters
// s3://BUCKET/KEY                      the key as it is
// hdfs://HOST[:PORT]/PATH              the path as it is; the port is WebHDFS's (9870)
//
// Each may end in #sha256=HEX: what the file's bytes must come to. Behind http(s) no other '#' may
// stand.
struct RemoteUri {
  UriScheme scheme = UriScheme::kHttp;
  std::string host;    // with the port, if one is given; of s3 the bucket
  std::string path;    // begins with a slash, and names a file
  std::string query;   // with its question mark, or empty
  std::string sha256;  // 64 small hexadecimal digits, or empty

  std::string text() const;   // without the digest
  std::string shown() const;  // for people: without the query, which may hold a signature
  std::string file_name() const { return path.substr(path.rfind('/') + 1); }
  std::string folder() const;  // text() before the file's name, and the query
};

// Errors: kUsage for what is no URI of these, names no file, or holds a user's name or password
// (which the message leaves out); kUnsupported for another scheme.
Result<RemoteUri> parse_uri(const std::string& text);

// Every byte as %XX but letters, digits and -_.~ and slashes, as SigV4 wants it.
std::string percent_encoded(const std::string& path);

}  // namespace speedo
