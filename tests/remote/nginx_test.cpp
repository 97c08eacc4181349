// A web server that many use: nginx, with a certificate of an authority of its own.

#include <optional>

#include "remote/remote_server.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/skip.hpp"

namespace speedo {
namespace {

using test::bytes_of;
using test::random_bytes;
using test::RemoteCache;

constexpr const char* kNginx = "/usr/sbin/nginx";

class Nginx {
 public:
  Nginx() {
    test::Process made(
        {"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", file("key.pem"), "-out", file("ca.pem"), "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"},
        folder_ / "openssl");
    REQUIRE(made.wait() == 0);
    test::write_bytes(file("nginx.conf"),
                      "daemon off; master_process off; pid " + file("pid") + "; error_log " +
                          file("errors") + ";\nevents {}\nhttp { access_log off;" +
                          temporary_folders() + "\nserver { listen 127.0.0.1:" + port_.text() +
                          " ssl; root " + file("served") + ";\nssl_certificate " + file("ca.pem") +
                          "; ssl_certificate_key " + file("key.pem") +
                          ";\nlocation = /plain { return 302 http://127.0.0.1:1/x; } } }\n");
    std::filesystem::create_directories(file("served"));
    process_.emplace(std::vector<std::string>{kNginx, "-c", file("nginx.conf"), "-p", file("")},
                     folder_ / "log");
    for (int tries = 0; test::answer_to(port_.port(), "x\r\n\r\n").empty(); ++tries) {
      REQUIRE(tries < 500);
      REQUIRE(process_->running());
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string uri(const std::string& path) const {
    return "https://" + port_.address() + "/" + path;
  }

 private:
  std::string temporary_folders() const {
    std::string lines;
    for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
      lines += std::string(kind) + "_temp_path " + file(kind) + "; ";
    }
    return lines;
  }

  TempDir folder_;
  test::ReservedPort port_;
  std::optional<test::Process> process_;
};

TEST_CASE("nginx gives files by https to who knows its authority") {
  if (!std::filesystem::exists(kNginx)) SPEEDO_SKIP("Debian's nginx-light is not installed");
  const Nginx server;
  test::write_bytes(server.file("served/a/file"), random_bytes(555555));
  RemoteCache stranger;
  const auto refused = stranger.fetch(server.uri("a/file"));
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(refused.error().message.find("--data-ca") != std::string::npos);

  RemoteCache cache;
  cache.terms.authority_file = server.file("ca.pem");
  const auto file = cache.fetch(server.uri("a/file"));
  CAPTURE(file ? "" : file.error().message);
  REQUIRE(file);
  CHECK((bytes_of(*file) == random_bytes(555555)));
  const auto missing = cache.fetch(server.uri("a/other"));
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);

  const auto plain = cache.fetch(server.uri("plain"));
  REQUIRE(!plain);
  CHECK(plain.error().code == ErrorCode::kRefused);
  CHECK(plain.error().message.find("from https to http") != std::string::npos);

  RemoteCache misled;
  misled.terms.authority_file = server.file("no-such-file.pem");
  const auto unread = misled.fetch(server.uri("a/file"));
  REQUIRE(!unread);
  CHECK(unread.error().code == ErrorCode::kUsage);
}

}  // namespace
}  // namespace speedo
