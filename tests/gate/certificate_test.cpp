// Certificates: an authority of the cluster's own, and who is let in by what.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/descriptor.hpp"
#include "base/input_roots.hpp"
#include "gate/authority.hpp"
#include "gate/certificate.hpp"
#include "gate/tls_channel.hpp"
#include "support/catch.hpp"
#include "support/file_size_limit.hpp"
#include "support/secret_search.hpp"
#include "support/temp_dir.hpp"

#include "admission_sides.hpp"

namespace speedo {
namespace {

using test::Sides;

// An authority with a master's and two workers' certificates.
struct Office {
  Office() {
    REQUIRE(create_authority(folder.path()));
    issue({.name = "head", .role = GateRole::kMaster, .hosts = {"127.0.0.1", "head.example.org"}});
    issue({.name = "node1"});
    issue({.name = "node2"});
  }
  void issue(const CertificateOrder& order) const {
    REQUIRE(issue_certificate(folder.path(), order));
  }
  GateFiles files(const std::string& name) const {
    return {.token = {},
            .certificates = {.certificate = folder / (name + ".pem"),
                             .key = folder / (name + ".key"),
                             .authority = folder / "ca.pem"}};
  }
  test::Credentials load(const std::string& name, GateRole role) const {
    auto loaded = GateCredentials::load(files(name), role);
    REQUIRE(loaded);
    return *loaded;
  }
  // As other authorities make them: for both sides of TLS, whatever the role.
  void allow_both_sides(const std::string& name) const {
    const auto open = [&](const std::string& file, const char* mode) {
      return std::unique_ptr<BIO, decltype(&::BIO_free_all)>(
          ::BIO_new_file((folder / file).c_str(), mode), ::BIO_free_all);
    };
    const std::unique_ptr<X509, decltype(&::X509_free)> made(
        ::PEM_read_bio_X509(open(name + ".pem", "r").get(), nullptr, nullptr, nullptr),
        ::X509_free);
    const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(
        ::PEM_read_bio_PrivateKey(open("ca.key", "r").get(), nullptr, nullptr, nullptr),
        ::EVP_PKEY_free);
    const int place = ::X509_get_ext_by_NID(made.get(), NID_ext_key_usage, -1);
    REQUIRE(place >= 0);
    ::X509_EXTENSION_free(::X509_delete_ext(made.get(), place));
    REQUIRE(::X509_sign(made.get(), key.get(), ::EVP_sha256()) > 0);
    REQUIRE(::PEM_write_bio_X509(open(name + ".pem", "w").get(), made.get()) == 1);
  }
  Error refusal(const std::string& name, GateRole role) const {
    const auto loaded = GateCredentials::load(files(name), role);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().message.find(name) != std::string::npos);
    return loaded.error();
  }

  TempDir folder;
};

Error ended(const Admission& side) {
  REQUIRE(side.step() == Admission::Step::kEnded);
  INFO(side.error().message);
  CHECK(side.error().code == ErrorCode::kRefused);
  return side.error();
}

// As OpenSSL calculates with it: its lowest byte first.
std::string number_of_key(const std::filesystem::path& path) {
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> file(::BIO_new_file(path.c_str(), "r"),
                                                             ::BIO_free_all);
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(
      ::PEM_read_bio_PrivateKey(file.get(), nullptr, nullptr, nullptr), ::EVP_PKEY_free);
  BIGNUM* number = nullptr;
  REQUIRE(::EVP_PKEY_get_bn_param(key.get(), OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1);
  std::string bytes(32, '\0');
  ::BN_bn2lebinpad(number, reinterpret_cast<unsigned char*>(bytes.data()), 32);
  ::BN_clear_free(number);
  return bytes;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

TEST_CASE("a worker's certificate is let in by a master's, and the other way, in any pieces") {
  const Office office;
  const auto head = office.load("head", GateRole::kMaster);
  const auto node = office.load("node1", GateRole::kWorker);
  for (const std::size_t piece : {1, 7, 100000}) {
    Sides sides(head, node);
    sides.run(piece);
    REQUIRE(sides.both_in());
    CHECK(sides.listener->peer().name == "node1");
    CHECK(sides.caller->peer().name == "head");
  }
}

TEST_CASE("keys are for their user alone, and nothing is written over") {
  const Office office;
  for (const char* key : {"ca.key", "head.key", "node1.key"}) {
    struct stat status {};
    REQUIRE(::stat((office.folder / key).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
  CHECK(create_authority(office.folder.path()).error().code == ErrorCode::kCannotWrite);
  CHECK(issue_certificate(office.folder.path(), {.name = "node1"}).error().code ==
        ErrorCode::kCannotWrite);
  for (const char* name : {"", "ca", "../x", ".x", "a b", "a/b"}) {
    CHECK(issue_certificate(office.folder.path(), {.name = name}).error().code ==
          ErrorCode::kUsage);
  }
  TempDir elsewhere;
  CHECK_FALSE(issue_certificate(elsewhere.path(), {.name = "node1"}));
}

TEST_CASE("an authority or a certificate that a full disk cuts short leaves no file") {
  TempDir folder;
  REQUIRE(create_authority(folder.path()));
  REQUIRE(issue_certificate(folder.path(), {.name = "first"}));
  const auto key_bytes = std::filesystem::file_size(folder / "first.key");
  REQUIRE(key_bytes < std::filesystem::file_size(folder / "first.pem"));
  // Too small for the key, then for the certificate behind it.
  for (const auto limit : {key_bytes / 2, key_bytes}) {
    const TempDir empty;
    {
      const test::FileSizeLimit full(limit);
      CHECK(issue_certificate(folder.path(), {.name = "next"}).error().code ==
            ErrorCode::kCannotWrite);
      CHECK(create_authority(empty.path()).error().code == ErrorCode::kCannotWrite);
    }
    CHECK_FALSE(std::filesystem::exists(folder / "next.key"));
    CHECK_FALSE(std::filesystem::exists(folder / "next.pem"));
    CHECK(std::filesystem::is_empty(empty.path()));
  }
  CHECK(issue_certificate(folder.path(), {.name = "next"}));
}

TEST_CASE("a certificate that does not fit is named when it is loaded") {
  const Office office;
  CHECK(office.refusal("node1", GateRole::kMaster).message.find("for a worker, not for a master") !=
        std::string::npos);
  CHECK(office.refusal("head", GateRole::kWorker).code == ErrorCode::kRefused);
  CHECK(office.refusal("nobody", GateRole::kWorker).code == ErrorCode::kNotFound);
  ::chmod((office.folder / "node1.key").c_str(), 0644);
  CHECK(office.refusal("node1", GateRole::kWorker).message.find("chmod 600") !=
        std::string::npos);
  const Office other;
  GateFiles mixed = office.files("node2");
  mixed.certificates.authority = other.folder / "ca.pem";
  const auto loaded = GateCredentials::load(mixed, GateRole::kWorker);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().message.find("another authority") != std::string::npos);
  mixed = office.files("node2");
  mixed.certificates.key = office.folder / "head.key";
  CHECK_FALSE(GateCredentials::load(mixed, GateRole::kWorker));
}

TEST_CASE("a master's certificate is for names and addresses that it can be called by, or none") {
  const Office office;
  const auto order = [&](const std::string& name, const std::vector<std::string>& hosts) {
    return issue_certificate(office.folder.path(),
                             {.name = name, .role = GateRole::kMaster, .hosts = hosts});
  };
  const std::vector<std::vector<std::string>> wrong{
      {},           {""},        {"10.0.0.300"}, {"10.0.0"},        {"1:2"}, {"email:x@y"},
      {"h\xc3\xb6st.example"}, {"a b"},        {"[10.0.0.1]"},    {"[]"},  {"head..org"},
      {"-head"},    {".org"},    {"head_1/x"},   {"a.*.org"},       {"*"},   {"head", ""},
      {std::string(64, 'a')},    {"fe80::1%eth0"}};
  for (const auto& hosts : wrong) {
    CAPTURE(hosts);
    const auto made = order("wrong", hosts);
    CHECK_FALSE(made);
    if (made) break;
    CHECK(made.error().code == ErrorCode::kUsage);
    CHECK_FALSE(std::filesystem::exists(office.folder / "wrong.key"));
  }
  REQUIRE(order("right", {"[::1]", "fd77::7", "10.0.0.3", "head-7.example.org", "n0",
                          "*.example.org", "node_7"}));
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> file(
      ::BIO_new_file((office.folder / "right.pem").c_str(), "r"), ::BIO_free_all);
  const std::unique_ptr<X509, decltype(&::X509_free)> made(
      ::PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr), ::X509_free);
  REQUIRE(made);
  for (const char* address : {"::1", "fd77::7", "10.0.0.3"}) {
    CHECK(::X509_check_ip_asc(made.get(), address, 0) == 1);
  }
  for (const char* name : {"head-7.example.org", "n0", "any.example.org"}) {
    CHECK(::X509_check_host(made.get(), name, 0, 0, nullptr) == 1);
  }
}

TEST_CASE("a certificate whose time is over is refused by its owner and by its peer") {
  const Office office;
  office.issue({.name = "old", .days = 0});
  const Error own = office.refusal("old", GateRole::kWorker);
  CHECK(own.code == ErrorCode::kRefused);
  CHECK(own.message.find("expired") != std::string::npos);
  // A master's own check is that of its own role: here one lets itself be called with it.
  const CertificateFiles files = office.files("old").certificates;
  const auto context = certificate_context(GateSide::kCalls, files);
  REQUIRE(context);
  const auto calls = make_tls_channel(GateSide::kCalls, *context, {}).value();
  const auto head = office.load("head", GateRole::kMaster);
  const auto listens = head->make_channel(GateSide::kListens, 0, "", "").value();
  std::string to_head, to_old, plain;
  REQUIRE(calls->begin(to_head));
  Result<void> heard, refused;
  for (int i = 0; i < 4 && heard && refused; ++i) {
    heard = listens->receive(std::exchange(to_head, {}), plain, to_old);
    refused = calls->receive(std::exchange(to_old, {}), plain, to_head);
  }
  REQUIRE_FALSE(heard);
  CHECK(heard.error().message.find("expired") != std::string::npos);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
}

TEST_CASE("a certificate of another authority gets no further than the preamble") {
  const Office office, other;
  Sides sides(office.load("head", GateRole::kMaster), other.load("node1", GateRole::kWorker));
  sides.run();
  CHECK(sides.listener->refusal() == Refusal::kUnknownKey);
  ended(*sides.caller);
}

TEST_CASE("while an authority is being changed, certificates of both are let in") {
  const Office before, after;
  TempDir folder;
  const auto text = [](const Office& office) { return text_of(office.folder / "ca.pem"); };
  std::ofstream(folder / "both.pem") << text(after) << text(before);
  const auto load = [&](const Office& office, const std::string& name, GateRole role) {
    GateFiles files = office.files(name);
    files.certificates.authority = folder / "both.pem";
    return GateCredentials::load(files, role).value();
  };
  for (const Office* of_head : {&before, &after}) {
    const auto head = load(*of_head, "head", GateRole::kMaster);
    for (const Office* of_node : {&before, &after}) {
      Sides sides(head, load(*of_node, "node1", GateRole::kWorker));
      sides.run(100000);
      CHECK(sides.both_in());
    }
  }
  REQUIRE(revoke_certificates(before.folder.path(), "node2"));
  std::ofstream(folder / "both.pem") << text(after) << text(before);
  Sides sides(load(after, "head", GateRole::kMaster), load(before, "node2", GateRole::kWorker));
  sides.run(100000);
  CHECK(ended(*sides.listener).message.find("revoked") != std::string::npos);
}

TEST_CASE("a worker's certificate does not pass for a master's") {
  const Office office;
  // The worker listens: nobody else would let it.
  Sides sides(office.load("node1", GateRole::kWorker), office.load("node2", GateRole::kWorker));
  sides.run();
  CHECK(ended(*sides.caller).message.find("purpose") != std::string::npos);
}

TEST_CASE("a certificate that TLS takes on both sides still has one role") {
  const Office office;
  office.issue({.name = "head2", .role = GateRole::kMaster, .hosts = {"127.0.0.1"}});
  for (const char* name : {"node1", "head2"}) office.allow_both_sides(name);
  const auto worker = office.load("node1", GateRole::kWorker);
  Sides led_by_a_worker(worker, office.load("node2", GateRole::kWorker));
  led_by_a_worker.run();
  CHECK(ended(*led_by_a_worker.caller).message.find("not a master's") != std::string::npos);
  const auto head = office.load("head", GateRole::kMaster);
  Sides called_by_a_master(head, office.load("head2", GateRole::kMaster));
  called_by_a_master.run();
  CHECK(called_by_a_master.listener->refusal() == Refusal::kRole);
  Sides well(head, worker);
  well.run();
  CHECK(well.listener->step() == Admission::Step::kAdmitted);
}

TEST_CASE("a master's certificate is for the names that it is called by") {
  const Office office;
  const Certificate head =
      read_certificates(office.folder / "head.pem").value().front();
  CHECK(head.stands_for("127.0.0.1"));
  CHECK(head.stands_for("head.example.org"));
  CHECK_FALSE(head.stands_for("other.example.org"));
  CHECK_FALSE(head.stands_for("10.0.0.1"));
  // To whom it was issued is no name that it is called by.
  office.issue({.name = "localhost", .role = GateRole::kMaster, .hosts = {"10.0.0.1"}});
  const Certificate local = read_certificates(office.folder / "localhost.pem").value().front();
  CHECK(local.stands_for("10.0.0.1"));
  CHECK_FALSE(local.stands_for("localhost"));
  office.issue({.name = "far", .role = GateRole::kMaster, .hosts = {"10.0.0.1"}});
  Sides sides(office.load("far", GateRole::kMaster), office.load("node1", GateRole::kWorker));
  sides.run();
  CHECK(ended(*sides.caller).message.find("127.0.0.1") != std::string::npos);
}

TEST_CASE("a revoked certificate is refused by who has the new list, others stay") {
  const Office office;
  const auto node = office.load("node1", GateRole::kWorker);
  REQUIRE(revoke_certificates(office.folder.path(), "node1"));
  CHECK(revoke_certificates(office.folder.path(), "node1").error().code == ErrorCode::kUsage);
  CHECK(revoke_certificates(office.folder.path(), "nobody").error().code == ErrorCode::kNotFound);
  const auto head = office.load("head", GateRole::kMaster);
  Sides revoked(head, node);
  revoked.run();
  CHECK(ended(*revoked.listener).message.find("revoked") != std::string::npos);
  CHECK(ended(*revoked.caller).message.find("revoked") != std::string::npos);
  Sides good(head, office.load("node2", GateRole::kWorker));
  good.run();
  CHECK(good.both_in());
  REQUIRE(revoke_certificates(office.folder.path(), "node2"));
  Sides both(office.load("head", GateRole::kMaster), node);
  both.run();
  CHECK_FALSE(both.both_in());
}

TEST_CASE("a name is revoked with all that was issued by it, and it can be issued anew") {
  const Office office;
  const TempDir moved;
  const auto move_away = [&](const std::string& name, const std::string& to) {
    for (const std::string ending : {".pem", ".key"}) {
      std::filesystem::rename(office.folder / (name + ending), moved / (to + ending));
    }
  };
  const auto is_let_in = [&](const std::filesystem::path& stem) {
    const auto node =
        GateCredentials::load({.token = {},
                               .certificates = {.certificate = stem.string() + ".pem",
                                                .key = stem.string() + ".key",
                                                .authority = office.folder / "ca.pem"}},
                              GateRole::kWorker);
    REQUIRE(node);
    Sides sides(office.load("head", GateRole::kMaster), *node);
    sides.run();
    return sides.both_in();
  };
  const Error there = issue_certificate(office.folder.path(), {.name = "node1"}).error();
  CHECK(there.message.find("move node1.pem and node1.key away") != std::string::npos);
  move_away("node1", "old");
  office.issue({.name = "node1"});
  CHECK(is_let_in(moved / "old"));
  CHECK(is_let_in(office.folder / "node1"));
  CHECK(revoke_certificates(office.folder.path(), "node1").value() == 2);
  CHECK_FALSE(is_let_in(moved / "old"));
  CHECK_FALSE(is_let_in(office.folder / "node1"));
  move_away("node1", "second");
  CHECK(revoke_certificates(office.folder.path(), "node1").error().code == ErrorCode::kUsage);
  office.issue({.name = "node1"});
  CHECK(is_let_in(office.folder / "node1"));
  move_away("node1", "third");  // revoked without its file
  CHECK(revoke_certificates(office.folder.path(), "node1").value() == 1);
  CHECK_FALSE(is_let_in(moved / "third"));
  CHECK(is_let_in(office.folder / "node2"));
}

TEST_CASE("the list of what was issued may be missing, and is used whole or not at all") {
  const Office office;
  const std::filesystem::path list = office.folder / "issued";
  const std::string whole = text_of(list);
  std::filesystem::remove(list);
  CHECK(revoke_certificates(office.folder.path(), "node1").value() == 1);
  office.issue({.name = "node3"});
  CHECK(text_of(list).starts_with("node3 "));
  std::ofstream(list, std::ios::trunc) << "old 5A 2020-01-01T00:00:00Z\n" << whole;
  CHECK(revoke_certificates(office.folder.path(), "old").error().code == ErrorCode::kUsage);
  for (const char* line : {"node2", "node2 xyz 2030-01-01T00:00:00Z", "node2 5A now or then", ""}) {
    std::ofstream(list, std::ios::trunc) << whole << line << '\n';
    const Error damaged = revoke_certificates(office.folder.path(), "node2").error();
    CHECK(damaged.code == ErrorCode::kConfig);
    CHECK(damaged.message.find("line 4") != std::string::npos);
    CHECK_FALSE(issue_certificate(office.folder.path(), {.name = "node4"}));
  }
  std::ofstream(list, std::ios::trunc) << whole.substr(0, whole.size() - 1);
  office.issue({.name = "node4"});
  CHECK(text_of(list).starts_with(whole + "node4 "));
}

TEST_CASE("who revokes waits for one that is changing the list, so that none is forgotten") {
  const Office office;
  const std::string before = text_of(office.folder / "ca.pem");
  std::vector<std::jthread> each;
  std::atomic<int> revoked = 0;
  {
    const Descriptor other(::open(office.folder.path().c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(other.get(), LOCK_EX) == 0);
    for (const char* name : {"node1", "node2"}) {
      each.emplace_back(
          [&, name] { revoked += revoke_certificates(office.folder.path(), name) ? 1 : 0; });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    CHECK(text_of(office.folder / "ca.pem") == before);
  }
  each.clear();
  CHECK(revoked == 2);
  for (const char* name : {"node1", "node2"}) {
    CHECK(revoke_certificates(office.folder.path(), name).error().code == ErrorCode::kUsage);
  }
}

TEST_CASE("what others have put into an authority's file stays when it revokes") {
  const Office own, other;
  const std::filesystem::path path = own.folder / "ca.pem";
  const std::string before = text_of(other.folder / "ca.pem");
  const std::string middle = text_of(path), behind = "# the one of the old cluster is above\n";
  std::ofstream(path) << before << middle << behind;
  REQUIRE(revoke_certificates(own.folder.path(), "node1"));
  const std::string after = text_of(path);
  CHECK(after.starts_with(before + middle.substr(0, middle.find("-----BEGIN X509 CRL"))));
  CHECK(after.ends_with(behind));
  Sides revoked(own.load("head", GateRole::kMaster), own.load("node1", GateRole::kWorker));
  revoked.run(100000);
  CHECK(ended(*revoked.listener).message.find("revoked") != std::string::npos);
  own.issue({.name = "node3"});
  Sides good(own.load("head", GateRole::kMaster), own.load("node3", GateRole::kWorker));
  good.run(100000);
  CHECK(good.both_in());
}

TEST_CASE("an authority's file is used whole or not at all: no list in it is passed over") {
  const Office office;
  REQUIRE(revoke_certificates(office.folder.path(), "node1"));
  const std::filesystem::path path = office.folder / "ca.pem";
  const std::string whole = text_of(path);
  const auto refused = [&](const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
    const auto loaded = GateCredentials::load(office.files("head"), GateRole::kMaster);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().message.find(path.string()) != std::string::npos);
    return loaded.error().code;
  };
  const std::string begin = "-----BEGIN X509 CRL-----\n", end = "-----END X509 CRL-----\n";
  const std::size_t place = whole.find(begin);
  REQUIRE(place != std::string::npos);
  const auto without = [&](std::size_t from, std::size_t size) {
    return whole.substr(0, from) + whole.substr(from + size);
  };
  CHECK(refused(without(place, begin.size())) == ErrorCode::kConfig);
  CHECK(refused(without(place, 7)) == ErrorCode::kConfig);
  CHECK(refused(without(place + 8, 1)) == ErrorCode::kConfig);
  CHECK(refused(without(place + 12, 5)) == ErrorCode::kConfig);
  CHECK(refused(without(place + begin.size() + 9, 1)) == ErrorCode::kConfig);
  CHECK(refused(without(whole.find(end), end.size())) == ErrorCode::kConfig);
  CHECK(refused(whole.substr(place + begin.size(), 65) + whole) == ErrorCode::kConfig);
  CHECK(refused(whole.substr(place)) == ErrorCode::kConfig);
  CHECK(refused("") == ErrorCode::kConfig);
  // Comments, and ends of lines of another system, are no damage.
  std::string other = "An authority\n============\n" + whole + "\n# the end\n";
  for (std::size_t i = 0; (i = other.find('\n', i)) != std::string::npos; i += 2) {
    other.insert(i, 1, '\r');
  }
  std::ofstream(path, std::ios::trunc) << "\xEF\xBB\xBF" << other;
  Sides sides(office.load("head", GateRole::kMaster), office.load("node1", GateRole::kWorker));
  sides.run(100000);
  CHECK(ended(*sides.listener).message.find("revoked") != std::string::npos);
}

TEST_CASE("where a net may read from does not confine what the user names") {
  const Office office;
  const TempDir data;
  const auto confined = InputRoots::confine({.folders = {data.path()}});
  REQUIRE(confined);
  CHECK(GateCredentials::load(office.files("node1"), GateRole::kWorker));
}

TEST_CASE("the name in a certificate begins no line of a log and moves no cursor") {
  const std::shared_ptr<X509> made(::X509_new(), ::X509_free);
  const std::string name("node\n[error] \x1b[2Jgone\0.", 22);
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.data()),
                               static_cast<int>(name.size()), -1, 0);
  CHECK(Certificate(made).common_name() == "node?[error] ?[2Jgone?");
}

TEST_CASE("the number of a private key that is in use is in no core dump") {
  const Office office;
  const GateFiles files = office.files("head");
  int loaded[2] = {-1, -1};
  REQUIRE(::pipe2(loaded, O_CLOEXEC) == 0);
  const Descriptor reads(loaded[0]), writes(loaded[1]);
  const pid_t process = ::fork();
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto credentials = GateCredentials::load(files, GateRole::kMaster);
    if (credentials) (void)!::write(writes.get(), "x", 1);
    while (true) ::pause();
  }
  REQUIRE(process > 0);
  pollfd polled{.fd = reads.get(), .events = POLLIN, .revents = 0};
  const bool has_loaded = ::poll(&polled, 1, 60000) == 1;
  test::Places dumped, left_out;
  if (has_loaded) {
    const test::Texts number = {number_of_key(files.certificates.key)};
    dumped = test::in_memory(process, test::MemoryPart::kDumped, number);
    left_out = test::in_memory(process, test::MemoryPart::kUndumped, number);
  }
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  CHECK(has_loaded);
  CHECK(dumped == test::Places{});
  CHECK_FALSE(left_out.empty());
}

}  // namespace speedo
