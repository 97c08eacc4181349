// The tools, where what they write would take the place of what they read.

#include "command_support.hpp"

namespace speedo::test {
namespace {

// Ten records in a database.
std::string write_records(Context& place, const std::string& backend) {
  std::string table;
  for (int i = 0; i < 10; ++i) table += std::to_string(i) + ",7," + std::to_string(i) + "\n";
  const std::string csv = place.write("a.csv", table);
  const std::string database = place.file(backend);
  REQUIRE(place.run({"speedo", "convert", "csv", csv, database, "--backend", backend}).exit_code ==
          0);
  return database;
}

void check_count(Context& place, const std::string& database, int count) {
  const Outcome copied = place.run({"speedo", "convert", "db", database, place.file("copy"),
                                    "--backend", "datumfile", "--force"});
  INFO(database << ": " << copied.errors);
  CHECK(copied.errors.find("Wrote " + std::to_string(count) + " records") != std::string::npos);
}

TEST_CASE("convert: a split into its own source loses nothing, where a part fails either") {
  for (const std::string backend : {"lmdb", "leveldb", "datumfile"}) {
    Context place;
    const std::string source = write_records(place, backend);
    std::filesystem::create_directory(place.file("notes"));
    place.write("notes/mine.txt", "not a database");
    const std::vector<std::string> split = {
        "speedo", "convert",   "db",    source,    source,         "--test-every",
        "2",      "--backend", backend, "--force", "--test-output"};
    auto refused = split;
    refused.push_back(place.file("notes"));
    CHECK(place.run(refused).exit_code == 73);
    check_count(place, source, 10);
    auto done = split;
    done.push_back(place.file("test"));
    CHECK(place.run(done).exit_code == 0);
    check_count(place, source, 5);
    check_count(place, place.file("test"), 5);
  }
}

TEST_CASE("convert: parts of which the first is the source, by a link, lose nothing either") {
  Context place;
  const std::string source = write_records(place, "leveldb");
  std::filesystem::create_directory_symlink(source, place.file("part_0"));
  std::filesystem::create_directory(place.file("part_1"));
  place.write("part_1/mine.txt", "not a database");
  const std::vector<std::string> parts = {"speedo",           "convert", "db", source,
                                          place.file("part"), "--parts", "2",  "--backend",
                                          "leveldb",          "--force"};
  CHECK(place.run(parts).exit_code == 73);
  check_count(place, source, 10);
  std::filesystem::remove_all(place.file("part_1"));
  CHECK(place.run(parts).exit_code == 0);
  check_count(place, source, 5);
  check_count(place, place.file("part_1"), 5);
}

TEST_CASE("convert: outputs that are one and the same, or inputs both, are refused") {
  Context place;
  const std::string a = place.write("a.bin", "a"), b = place.write("b.bin", "b");
  const Outcome both = place.run({"speedo", "convert", "cifar", a, b, a, "--test-output", b,
                                  "--test-every", "2", "--backend", "datumfile", "--force"});
  CHECK(both.exit_code == 2);
  CHECK(both.error_line().find("both are what is read") != std::string::npos);
  CHECK(place.read("a.bin") == "a");
  std::filesystem::create_symlink(a, place.file("x_0"));
  std::filesystem::create_symlink(a, place.file("x_1"));
  const Outcome same = place.run({"speedo", "convert", "db", b, place.file("x"), "--parts", "2",
                                  "--backend", "datumfile", "--force"});
  CHECK(same.exit_code == 2);
  CHECK(same.error_line().find("give it another name") != std::string::npos);
}

TEST_CASE("convert: HDF5 outputs of which one's data would lie in the other's place are refused") {
  Context place;
  const std::string table = place.write("a.csv", "1,0\n2,1\n3,0\n4,1\n");
  const auto convert = [&](const std::string& output, const std::vector<std::string>& flags) {
    std::vector<std::string> command = {"speedo",           "convert",   "csv",  table,
                                        place.file(output), "--backend", "hdf5", "--force"};
    command.insert(command.end(), flags.begin(), flags.end());
    return place.run(command);
  };
  const auto test_to = [&](const std::string& output) {
    return std::vector<std::string>{"--test-every", "2", "--test-output", place.file(output)};
  };
  for (const char* output : {"z_0.h5", "z_12.h5", "z.txt"}) {
    CAPTURE(output);
    const Outcome refused = convert("z.h5", test_to(output));
    CHECK(refused.exit_code == 2);
    CHECK(refused.error_line().find("would replace each other's files") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(place.file("z.h5")));
  }
  CHECK(convert("z_0.h5", test_to("z.h5")).exit_code == 2);
  std::vector<std::string> parts = test_to("z.h5");
  parts.insert(parts.end(), {"--parts", "2"});
  CHECK(convert("z.h5", parts).exit_code == 2);
  // No data, by these names.
  for (const char* output : {"z_0.txt", "z_x.h5", "zz_0.h5"}) {
    CAPTURE(output);
    const Outcome done = convert("z.h5", test_to(output));
    INFO(done.errors);
    CHECK(done.exit_code == 0);
  }
}

TEST_CASE("convert: parts of an HDF5 output take no data away that another list names") {
  Context place;
  const std::string table = place.write("a.csv", "1,0\n2,1\n3,0\n4,1\n");
  std::vector<std::string> command = {"speedo",           "convert",   "csv",  table,
                                      place.file("m.h5"), "--backend", "hdf5", "--force"};
  REQUIRE(place.run(command).exit_code == 0);
  const std::string data = place.read("m_0.h5");
  command.insert(command.end(), {"--parts", "2"});
  const Outcome refused = place.run(command);
  CHECK(refused.exit_code == 73);
  CHECK(refused.error_line().find("m_0.h5' is an HDF5 file") != std::string::npos);
  CHECK(place.read("m_0.h5") == data);
}

// It is a usage error, and `kept` holds what it held.
void check_kept(Context& place, const std::vector<std::string>& line, const std::string& kept) {
  INFO(line[1] << ' ' << line.back());
  const std::string before = place.read(kept);
  REQUIRE(!before.empty());
  const Outcome outcome = place.run(line);
  INFO(outcome.errors);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.error_line().find("would replace") != std::string::npos);
  CHECK(place.read(kept) == before);
}

TEST_CASE("a mean does not go where its records are") {
  Context place;
  const std::string file = write_records(place, "datumfile"), folder = write_records(place, "lmdb");
  std::filesystem::create_symlink(file, place.file("link"));
  check_kept(place, {"speedo", "compute_image_mean", file, file}, "datumfile");
  check_kept(place, {"speedo", "mean", "--force", file, place.file("./datumfile")}, "datumfile");
  check_kept(place, {"speedo", "mean", "--force", place.file("link"), file}, "datumfile");
  const std::string data = place.file("lmdb/data.mdb");
  check_kept(place, {"speedo", "compute_image_mean", folder, data}, "lmdb/data.mdb");
  check_kept(place, {"speedo", "mean", "--force", folder + "/", data}, "lmdb/data.mdb");
  check_kept(place, {"speedo", "mean", "--force", data, data}, "lmdb/data.mdb");
  const std::string parts = place.write("a.bin", "a") + "," + place.write("b.bin", "b");
  check_kept(place, {"speedo", "mean", "--force", parts, place.file("b.bin")}, "b.bin");
  const std::string beside = place.file("lmdb/mean.binaryproto");
  CHECK(place.run({"speedo", "compute_image_mean", folder, beside}).exit_code == 0);
  CHECK(place.run({"speedo", "compute_image_mean", folder, beside}).exit_code == 0);
}

TEST_CASE("convert_imageset replaces neither its list nor an image of it") {
  Context place;
  const std::string image = place.write("a.pgm", "P5 2 2 255\nabcd");
  const std::string list = place.write("list.txt", "a.pgm 1\n");
  const std::vector<std::string> line = {"speedo",        "convert_imageset",    "--backend",
                                         "datumfile",     "--force",             place.file("./"),
                                         list};
  for (const std::string& kept : {std::string("list.txt"), std::string("a.pgm")}) {
    std::vector<std::string> words = line;
    words.push_back(place.file("./" + kept));
    check_kept(place, words, kept);
  }
  std::vector<std::string> words = line;
  words.push_back(place.write("other", "x"));
  CHECK(place.run(words).exit_code == 0);
}

TEST_CASE("a drawing does not go where its net or its logs are") {
  Context place;
  check_kept(place, {"speedo", "draw_net", place.write_net("net.dot"), place.file("net.dot")},
             "net.dot");
  const std::string log = place.write("log.svg", "a log");
  check_kept(place, {"speedo", "plot_log", "6", log, place.write("other.log", "x"), log},
             "log.svg");
}

}  // namespace
}  // namespace speedo::test
