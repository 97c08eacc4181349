#include "remote/remote_uri.hpp"

#include <speedo/base/remote_files.hpp>

#include "base/read_found.hpp"
#include "remote/byte_parts.hpp"
#include "remote/retries.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

Error refusal(const std::string& text) {
  const auto uri = parse_uri(text);
  REQUIRE(!uri);
  return uri.error();
}

TEST_CASE("A URI is told apart into scheme, host, path, query and digest") {
  const auto web =
      parse_uri("https://example.org:8443/a/b.mdb?Signature=x#sha256=" + std::string(64, 'A'));
  REQUIRE(web);
  CHECK(web->scheme == UriScheme::kHttps);
  CHECK(web->host == "example.org:8443");
  CHECK(web->file_name() == "b.mdb");
  CHECK(web->sha256 == std::string(64, 'a'));
  CHECK(web->text() == "https://example.org:8443/a/b.mdb?Signature=x");
  CHECK(web->shown() == "https://example.org:8443/a/b.mdb");
  CHECK(web->folder() == "https://example.org:8443/a/?Signature=x");

  const auto object = parse_uri("s3://bucket.of.mine/a b/c?d#e");
  REQUIRE(object);
  CHECK(object->path == "/a b/c?d#e");
  CHECK(percent_encoded(object->path) == "/a%20b/c%3Fd%23e");
}

TEST_CASE("Blanks and other bytes in a web address are written as URIs write them") {
  const auto uri = parse_uri("http://h/a b/\xc3\xa4.jpg");
  CAPTURE(uri ? "" : uri.error().message);
  REQUIRE(uri);
  CHECK(uri->text() == "http://h/a%20b/%C3%A4.jpg");
}

TEST_CASE("What is no URI of a file is refused, and no password is shown") {
  CHECK(refusal("ftp://host/file").code == ErrorCode::kUnsupported);
  CHECK(refusal("http:///file").code == ErrorCode::kUsage);
  CHECK(refusal("http://host/folder/").code == ErrorCode::kUsage);
  CHECK(refusal("http://host/a/..").code == ErrorCode::kUsage);
  CHECK(refusal("http://host").code == ErrorCode::kUsage);
  CHECK(refusal("s3://user:x@bucket/key").code == ErrorCode::kUsage);
  CHECK(refusal("http://ho\nst/file").code == ErrorCode::kUsage);
  CHECK(refusal("http://host/fi\nle").code == ErrorCode::kUsage);
  CHECK(refusal("http://host/file#sha256=12").code == ErrorCode::kUsage);
  CHECK(refusal("http://host/" + std::string(5000, 'a')).code == ErrorCode::kUsage);
  const std::string digest = "#sha256=" + std::string(64, 'a');
  for (const std::string& mark : {std::string("#1"), std::string("#"),
                                  std::string("?token=hidden#1"), "#1" + digest}) {
    const Error error = refusal("http://host/file" + mark);
    CHECK(error.code == ErrorCode::kUsage);
    CHECK(error.message.find("'http://host/file' ") != std::string::npos);
    CHECK(error.message.find("%23") != std::string::npos);
    CHECK(error.message.find("hidden") == std::string::npos);
  }
  const Error error = refusal("https://ann:geheim@host/file?token=hidden");
  CHECK(error.code == ErrorCode::kUsage);
  CHECK(error.message.find("geheim") == std::string::npos);
  CHECK(error.message.find("hidden") == std::string::npos);
  CHECK(error.message.find("netrc") != std::string::npos);
}

TEST_CASE("What is shown of a name has no query of a URI, and nobody who asks", "[shown]") {
  const std::string digest = "#sha256=" + std::string(64, 'a');
  CHECK(shown_name("").empty());
  CHECK(shown_name("a dir/b?c#d@e,f") == "a dir/b?c#d@e,f");
  CHECK(shown_name("https://h:1/a@b/c?X-Signature=hidden") == "https://h:1/a@b/c");
  CHECK(shown_name("https://h/c?x=hidden" + digest) == "https://h/c" + digest);
  CHECK(shown_name("https://h/c" + digest) == "https://h/c" + digest);
  CHECK(shown_name("https://h/c#hidden") == "https://h/c");
  CHECK(shown_name("http://ann:ge@heim@h/c?hidden") == "http://h/c");
  CHECK(shown_name("http://ann:geheim@h") == "http://h");
  CHECK(shown_name("http://h?hidden") == "http://h");
  CHECK(shown_name("ftp://ann@h/c?hidden") == "ftp://h/c");
  // Of these a path is as it is.
  CHECK(shown_name("s3://b/k?1#2") == "s3://b/k?1#2");
  CHECK(shown_name("hdfs://ann:geheim@h/k?1") == "hdfs://h/k?1");
  CHECK(shown_name("http://h/a?s=1,hidden,http://h/b?hidden") == "http://h/a,http://h/b");
  CHECK(shown_name("a,http://h/b?hidden") == "a,http://h/b");
}

TEST_CASE("An error of a copy names the URI that it came from, once and without its query") {
  const auto said = [](const std::string& message, const std::string& name) {
    return from_uri({ErrorCode::kData, message}, name).message;
  };
  CHECK(said("/c/f: damaged", "http://h/f?hidden") == "/c/f: damaged (it came from 'http://h/f')");
  CHECK(said("'http://h/f': refused", "http://h/f?hidden") == "'http://h/f': refused");
  CHECK(said("/c/f: damaged", "/c/f") == "/c/f: damaged");
}

TEST_CASE("What names no URI is a path, and a path beside a URI is one") {
  CHECK(is_uri("s3://bucket/key"));
  CHECK(!is_uri("data/mnist_lmdb"));
  CHECK(!is_uri("://x"));
  CHECK(!is_uri("a b://x"));
  CHECK(uri_beside("http://h/a/list.txt?x=/y", "b/c.jpg") == "http://h/a/b/c.jpg");
  CHECK(uri_beside("http://h/a/list.txt", "/abs/c.jpg") == "/abs/c.jpg");
  CHECK(uri_beside("http://h/a/list.txt", "s3://b/c") == "s3://b/c");
  CHECK(resolve_name("no-such-file", "hdfs://h/d") == "hdfs://h/d/no-such-file");
  CHECK(resolve_name("/no-such-file", "hdfs://h/d") == "/no-such-file");
}

TEST_CASE("The name of a file beside a URI stays one name, whatever signs are in it") {
  const std::string digest = "#sha256=" + std::string(64, 'a');
  CHECK(uri_beside("http://h/a/l.txt", "b#1/c?d%20 (e).jpg") ==
        "http://h/a/b%231/c%3Fd%2520%20(e).jpg");
  CHECK(uri_beside("https://h/l.txt", "\xc3\xa4\t[1].jpg") == "https://h/%C3%A4%09%5B1%5D.jpg");
  CHECK(uri_beside("http://h/l.txt", "c#1.jpg" + digest) == "http://h/c%231.jpg" + digest);
  CHECK(uri_beside("http://h/l.txt", "c#sha256=12") == "http://h/c%23sha256=12");
  CHECK(uri_beside("s3://b/a#1/l.txt" + digest, "c#2?d%20e.jpg") == "s3://b/a#1/c#2?d%20e.jpg");
  CHECK(uri_beside("hdfs://h/a?1/l.txt", "c.jpg") == "hdfs://h/a?1/c.jpg");
  CHECK(resolve_name("no such#1.txt", "http://h/a") == "http://h/a/no%20such%231.txt");
  CHECK(resolve_name("none#1.txt", "s3://b/a") == "s3://b/a/none#1.txt");
}

TEST_CASE("A program without remote files says so") {
  const auto file = find_file("http://host/file?token=hidden", {});
  REQUIRE(!file);
  CHECK(file.error().code == ErrorCode::kUnsupported);
  CHECK(file.error().message.find("hidden") == std::string::npos);
}

TEST_CASE("Parts cover a file without gaps, and each is taken once") {
  for (const std::uint64_t bytes : {0U, 1U, 99U, 100U, 101U, 1000U}) {
    ByteParts parts(bytes, 100);
    std::uint64_t end = 0;
    for (std::size_t part = 0; part < parts.count(); ++part) {
      CHECK(parts.span(part).begin == end);
      end = parts.span(part).end;
      CHECK(parts.span(part).bytes() > 0);
    }
    CHECK(end == bytes);
  }
  ByteParts parts(250, 100);
  parts.mark_there(1);
  CHECK(parts.bytes_there() == 100);
  CHECK(parts.take() == 0U);
  CHECK(parts.take() == 2U);
  CHECK(!parts.take());
  parts.mark_there(2);
  CHECK(parts.bytes_there() == 150);
}

TEST_CASE("A Content-Range is read as it is meant, or not at all") {
  const auto range = parse_content_range("bytes 5-9/100");
  REQUIRE(range);
  CHECK(range->span == ByteSpan{5, 10});
  CHECK(range->total == 100U);
  CHECK(!parse_content_range("bytes 5-9/*")->total);
  CHECK(parse_content_range("bytes */7")->total == 7U);
  for (const char* bad : {"", "bytes", "bytes 5-9", "bytes 9-5/100", "bytes 5-9/8", "items 1-2/3",
                          "bytes -1-2/3", "bytes 0-18446744073709551615/*", "bytes a-b/c"}) {
    CAPTURE(bad);
    CHECK(!parse_content_range(bad));
  }
}

TEST_CASE("Attempts that bring nothing on end, and those that do not go on") {
  using std::chrono::milliseconds;
  const RemoteTerms terms{.attempts_max = 4,
                          .backoff_first = milliseconds{100},
                          .backoff_max = milliseconds{300},
                          .progress_bytes = 1000};
  const Error cut{ErrorCode::kUnavailable, ""}, lie{ErrorCode::kCorrupt, ""};
  Retries idle(terms, 1000000);
  CHECK(idle.after(cut, 0) == milliseconds{100});
  CHECK(idle.after(cut, 999) == milliseconds{200});
  CHECK(idle.after(cut, 0, milliseconds{5000}) == milliseconds{5000});
  CHECK(!idle.after(cut, 0));
  Retries slow(terms, 1000000);
  for (int i = 0; i < 100; ++i) CHECK(slow.after(cut, 1000) == milliseconds{100});
  Retries small(terms, 6400);
  for (int i = 0; i < 100; ++i) CHECK(small.after(cut, 100) == milliseconds{100});
  CHECK(small.after(cut, 99) == milliseconds{200});
  Retries lied_to(terms);
  CHECK(lied_to.after(lie, 1000000));
  CHECK(lied_to.after(lie, 1000000));
  CHECK(!lied_to.after(lie, 1000000));
  Retries replaced(terms);
  for (int i = 0; i < 2; ++i) CHECK(replaced.after({ErrorCode::kMismatch, ""}, 0));
  CHECK(!replaced.after({ErrorCode::kMismatch, ""}, 0));
  CHECK(!Retries(terms).after({ErrorCode::kNotFound, ""}, 0));
  CHECK(!Retries(terms).after({ErrorCode::kRefused, ""}, 0));
}

}  // namespace
}  // namespace speedo
