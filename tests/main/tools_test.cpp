// The commands that carry the names of Caffe's tools, end to end.

#include <cmath>
#include <filesystem>
#include <map>

#include "caffe.pb.h"
#include "core/weight_file.hpp"
#include "data/open_source.hpp"
#include "main/caffe_log.hpp"
#include "main/command_support.hpp"
#include "support/shared_fixtures.hpp"
#include "support/skip.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<DataSource> source_at(const std::string& path) {
  auto source = open_source(path, {});
  if (!source) FAIL(source.error().message);
  return std::move(*source);
}

std::vector<std::int64_t> labels_in(const std::string& path) {
  const auto source = source_at(path);
  std::vector<std::int64_t> labels;
  Record record;
  for (std::int64_t i = 0; i < source->size(); ++i) {
    REQUIRE(source->read(i, record));
    labels.push_back(record.label);
  }
  return labels;
}

// Gray images of 4 x 4 pixels, all of one value each, in folder images/, and list.txt.
void write_images(const Context& place, int count) {
  fs::create_directory(place.file("images"));
  std::string list;
  for (int i = 0; i < count; ++i) {
    const std::string name = "an image " + std::to_string(i) + ".pgm";
    place.write("images/" + name, "P5 4 4 255\n" + std::string(16, static_cast<char>(10 * i)));
    list += name + " " + std::to_string(i % 3) + "\n";
  }
  place.write("list.txt", list);
}

std::vector<std::string> convert_line(const Context& place, const std::string& output,
                                      const std::vector<std::string>& flags = {}) {
  std::vector<std::string> line = {"speedo", "convert_imageset"};
  line.insert(line.end(), flags.begin(), flags.end());
  line.insert(line.end(), {place.file("images") + "/", place.file("list.txt"), place.file(output)});
  return line;
}

TEST_CASE("convert_imageset: each backend, gray or in color, stretched, encoded") {
  Context place;
  write_images(place, 7);
  for (const char* backend : {"lmdb", "leveldb", "datumfile"}) {
    INFO(backend);
    const Outcome made = place.run(
        convert_line(place, backend, {"-backend", backend, "--gray=true", "-logtostderr=1"}));
    INFO(made.errors);
    REQUIRE(made.exit_code == 0);
    CHECK(made.errors.find("A total of 7 images.") != std::string::npos);
    CHECK(made.errors.find("Processed 7 files.") != std::string::npos);
    CHECK(labels_in(place.file(backend)) == std::vector<std::int64_t>{0, 1, 2, 0, 1, 2, 0});
    Record record;
    REQUIRE(source_at(place.file(backend))->read(2, record));
    CHECK(record.bytes == std::vector<std::uint8_t>(16, 20));
  }
  CHECK(place.read("datumfile").find("00000006_an image 6.pgm") != std::string::npos);
  REQUIRE(place
              .run(convert_line(place, "png",
                                {"-resize_height=2", "-resize_width=3", "-nogray", "-encoded",
                                 "-encode_type=png", "-check_size"}))
              .exit_code == 0);
  Record record;
  REQUIRE(source_at(place.file("png"))->read(3, record));
  CHECK(record.channels == 3);
  CHECK(record.height == 2);
  CHECK(record.bytes == std::vector<std::uint8_t>(18, 30));
  REQUIRE(place.run(convert_line(place, "shuffled", {"-shuffle", "--seed", "3"})).exit_code == 0);
  std::vector<std::int64_t> labels = labels_in(place.file("shuffled"));
  CHECK(labels != labels_in(place.file("lmdb")));
  std::sort(labels.begin(), labels.end());
  CHECK(labels == std::vector<std::int64_t>{0, 0, 0, 1, 1, 2, 2});
}

TEST_CASE("convert_imageset: what cannot be read is left out and told of, or ends it") {
  Context place;
  write_images(place, 4);
  place.write("images/an image 1.pgm", "P5 4 4 255\nshort");
  const Outcome skipped = place.run(convert_line(place, "some"));
  CHECK(skipped.exit_code == 0);
  CHECK(skipped.errors.find("line 2: ") != std::string::npos);
  CHECK(skipped.errors.find("1 images could not be read") != std::string::npos);
  CHECK(labels_in(place.file("some")) == std::vector<std::int64_t>{0, 2, 0});
  const Outcome ended = place.run(convert_line(place, "none", {"--on-bad-record=abort"}));
  CHECK(ended.exit_code == 65);
  CHECK(ended.error_line().find("an image 1.pgm") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("none")));
  place.write("images/an image 1.pgm", "P5 2 2 255\nabcd");
  CHECK(place.run(convert_line(place, "none", {"--check_size"})).exit_code == 65);
  CHECK(place.run(convert_line(place, "none", {"-resize_width=3"})).exit_code == 2);
  const Outcome unknown = place.run(convert_line(place, "none", {"-encode_type=bmp"}));
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.error_line().find("--encode-type: takes png, jpg or jpeg, not 'bmp'") !=
        std::string::npos);
  CHECK(place.run(convert_line(place, "some")).exit_code == 73);
  place.write("list.txt", "");
  CHECK(place.run(convert_line(place, "none")).exit_code == 65);
  CHECK(place.run({"speedo", "convert_imageset", "-x"}).exit_code == 2);
}

TEST_CASE("convert and mean work on LevelDB as on LMDB, and bad records can be left out") {
  Context place;
  write_images(place, 5);
  REQUIRE(place.run(convert_line(place, "level", {"-backend=leveldb"})).exit_code == 0);
  REQUIRE(place
              .run({"speedo", "convert", "db", place.file("level"), place.file("again"),
                    "--backend", "leveldb", "--first", "1", "--count", "3"})
              .exit_code == 0);
  CHECK(labels_in(place.file("again")) == std::vector<std::int64_t>{1, 2, 0});
  const Outcome mean = place.run({"speedo", "compute_image_mean", "-backend", "leveldb",
                                  place.file("level"), place.file("mean.binaryproto")});
  REQUIRE(mean.exit_code == 0);
  CHECK(mean.errors.find("mean_value channel [2]: 20\n") != std::string::npos);
  REQUIRE(
      place
          .run({"speedo", "mean", place.file("level"), place.file("mean2"), "--backend", "leveldb"})
          .exit_code == 0);
  CHECK(place.read("mean.binaryproto") == place.read("mean2"));
  CHECK(place.run({"speedo", "compute_image_mean", place.file("level")}).exit_code == 0);
  CHECK(place.run({"speedo", "compute_image_mean", place.file("none")}).exit_code == 65);
  // A record of a datumfile that is no Datum.
  std::string file;
  for (const std::string& value : {std::string("xxx"), std::string()}) {
    const auto size = [&](std::size_t bytes) {
      file += std::string{static_cast<char>(bytes), 0, 0, 0};
    };
    size(value.size() + 9);
    size(1);
    file += "k";
    size(value.size());
    file += value;
  }
  place.write("bad", file);
  CHECK(place.run({"speedo", "convert", "db", place.file("bad"), place.file("x")}).exit_code == 65);
  CHECK(place
            .run({"speedo", "convert", "db", place.file("bad"), place.file("x"), "--on-bad-record",
                  "skip"})
            .exit_code == 65);
}

// A training on images of a list, of which one is damaged.
std::string write_image_solver(const Context& place) {
  write_images(place, 9);
  place.write("images/an image 4.pgm", "P5");
  return place.write("images.prototxt", R"(
    base_lr: 0.01 lr_policy: "fixed" max_iter: 6 display: 2 random_seed: 1 solver_mode: CPU
    snapshot_after_train: false
    net_param { name: "images"
      layer { name: "data" type: "ImageData" top: "data" top: "label"
              transform_param { scale: 0.00390625 mirror: true crop_size: 3 }
              image_data_param { source: "list.txt" root_folder: "images/" batch_size: 4
                                 shuffle: true is_color: false } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } })");
}

TEST_CASE("bad records end a training, or are left out and counted if that is asked for") {
  Context place;
  const std::string solver = write_image_solver(place);
  const Outcome ended = place.run({"speedo", "train", "--solver", solver});
  CHECK(ended.exit_code == 65);
  CHECK(ended.error_line().find("line 5: ") != std::string::npos);
  const Outcome skipped =
      place.run({"speedo", "train", "--solver", solver, "--on-bad-record", "skip", "--json"});
  REQUIRE(skipped.exit_code == 0);
  CHECK(skipped.json()["skipped_records"] == 1);
  CHECK(skipped.errors.find("Left out 1 records that could not be read") != std::string::npos);
  // Image lists are divided among workers as databases are.
  place.write("images/an image 4.pgm", "P5 4 4 255\n" + std::string(16, 'x'));
  const Outcome cluster =
      place.run({"speedo", "run", "--solver", solver, "--workers", "2", "--sync", "--json"});
  INFO(cluster.errors);
  REQUIRE(cluster.exit_code == 0);
  CHECK(cluster.json()["iterations"] == 6);
}

TEST_CASE("extract_features writes what blobs hold, for each image in turn") {
  Context place;
  write_images(place, 6);
  const std::string net = place.write("net.prototxt", R"(
    layer { name: "data" type: "ImageData" top: "data" top: "label"
            image_data_param { source: ")" + place.file("list.txt") +
                                                          R"(" root_folder: ")" +
                                                          place.file("images") + R"(/"
                               batch_size: 3 is_color: false } }
    layer { name: "half" type: "Power" bottom: "data" top: "half" power_param { scale: 0.5 } }
    layer { name: "ip" type: "InnerProduct" bottom: "half" top: "ip"
            inner_product_param { num_output: 2 } }
    layer { name: "total" type: "Reduction" bottom: "ip" top: "total" })");
  caffe::NetParameter weights;
  caffe::LayerParameter& layer = *weights.add_layer();
  layer.set_name("ip");
  layer.set_type("InnerProduct");
  for (const int count : {32, 2}) {
    caffe::BlobProto& blob = *layer.add_blobs();
    if (count > 2) blob.mutable_shape()->add_dim(2);
    blob.mutable_shape()->add_dim(count > 2 ? 16 : 2);
    for (int i = 0; i < count; ++i) blob.add_data(i < 16 ? 1.0F : 0.0F);
  }
  REQUIRE(write_caffemodel(place.file("w.caffemodel"), weights));
  const std::vector<std::string> line = {
      "speedo", "extract_features", place.file("w.caffemodel"),
      net,      "half,ip,total",
      place.file("half") + "," + place.file("sums") + "," + place.file("totals"),
      "2"};
  std::vector<std::string> whole = line;
  whole.emplace_back("leveldb");
  std::vector<std::string> twice = whole;
  twice[5] = "features,features,totals";
  const Outcome refused = place.run(twice);
  CHECK(refused.exit_code == 2);
  CHECK(refused.errors.find("one database is named twice") != std::string::npos);
  const Outcome outcome = place.run(whole);
  INFO(outcome.errors);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.errors.find("Successfully extracted the features!") != std::string::npos);
  Record record;
  const auto half = source_at(place.file("half")), sums = source_at(place.file("sums"));
  REQUIRE(half->size() == 6);
  REQUIRE(half->read(3, record));
  CHECK(record.height == 4);
  CHECK(record.floats == std::vector<float>(16, 15.0F));
  REQUIRE(sums->read(5, record));
  CHECK(record.channels == 2);
  CHECK(record.floats[0] == Approx(16 * 25.0F + 1.0F));
  // A single value is one record a batch.
  const auto totals = source_at(place.file("totals"));
  REQUIRE(totals->size() == 2);
  REQUIRE(totals->read(1, record));
  CHECK(record.floats.size() == 1);
  whole[4] = "half";
  CHECK(place.run(whole).exit_code == 2);
  whole[4] = "half,none";
  const Outcome unknown = place.run(whole);
  CHECK(unknown.exit_code != 0);
  CHECK(place.run(line).exit_code == 2);
  // What the net reads stays, whatever was asked.
  for (const std::string name : {"list.txt", "w.caffemodel", "net.prototxt"}) {
    CAPTURE(name);
    const std::string before = place.read(name);
    for (const char* workers : {"1", "2"}) {
      const Outcome lost = place.run({"speedo", "extract_features", "--force", line[2], net, "half",
                                      place.file("./" + name), "2", "datumfile", "--workers",
                                      workers});
      CHECK(lost.exit_code == 2);
      CHECK(lost.error_line().find("would replace") != std::string::npos);
    }
    CHECK(place.read(name) == before);
  }
  CHECK(place.run({"speedo", "extract_features", "--force", line[2], net, "half",
                   place.file("half"), "2", "leveldb"})
            .exit_code == 0);
}

TEST_CASE("parse_log makes the tables that Caffe's script makes") {
  Context place;
  const Outcome train =
      place.run({"speedo", "train", "-solver", place.write_solver(), "--log-format", "glog"});
  REQUIRE(train.exit_code == 0);
  const std::string log = place.write("train.log", train.errors);
  REQUIRE(place.run({"speedo", "parse_log", "--verbose", log, place.folder().string()}).exit_code ==
          0);
  const CaffeLog expected = CaffeLogParser::parse(train.errors);
  for (const auto& [name, rows] : std::map<std::string, std::vector<LogRow>>{
           {"train.log.train", expected.train}, {"train.log.test", expected.test}}) {
    INFO(name);
    std::istringstream table(place.read(name));
    std::string line;
    REQUIRE(std::getline(table, line));
    CHECK(line.starts_with("NumIters,Seconds,LearningRate,"));
    std::vector<std::string> columns;
    std::istringstream heads(line.substr(0, line.find('\r')));
    for (std::string head; std::getline(heads, head, ',');) columns.push_back(head);
    std::size_t row = 0;
    for (; std::getline(table, line); ++row) {
      REQUIRE(row < rows.size());
      std::istringstream cells(line);
      std::vector<double> values;
      for (std::string cell; std::getline(cells, cell, ',');) values.push_back(std::stod(cell));
      REQUIRE(values.size() == columns.size());
      CHECK(values[0] == rows[row].iteration);
      CHECK(values[1] == Approx(rows[row].seconds).margin(1e-6));
      CHECK(values[2] == Approx(0.05));
      for (std::size_t c = 3; c < columns.size(); ++c) {
        CHECK(values[c] == rows[row].outputs.at(columns[c]));
      }
    }
    CHECK(row == rows.size());
  }
  const std::string other = place.write("other.log", "nothing\n");
  CHECK(place.run({"speedo", "parse_log", other, place.folder().string()}).exit_code == 65);
}

TEST_CASE("convert writes several parts in one call, by number or ratio") {
  Context place;
  write_images(place, 9);
  REQUIRE(place.run(convert_line(place, "all")).exit_code == 0);
  const auto parts = [&](const std::string& how, const std::string& output) {
    return place.run({"speedo", "convert", "db", place.file("all"), place.file(output),
                      "--backend=datumfile", "--parts", how});
  };
  REQUIRE(parts("3", "equal.datumfile").exit_code == 0);
  for (int i = 0; i < 3; ++i) {
    CHECK(labels_in(place.file("equal_" + std::to_string(i) + ".datumfile")) ==
          std::vector<std::int64_t>(3, i));
  }
  REQUIRE(parts("2,1", "ratio").exit_code == 0);
  CHECK(source_at(place.file("ratio_0"))->size() == 6);
  CHECK(source_at(place.file("ratio_1"))->size() == 3);
  CHECK_FALSE(fs::exists(place.file("ratio")));
  for (const char* bad : {"0", "x", "1,0", "1,-1", "1,nan", "10", "1,,x"}) {
    INFO(bad);
    CHECK(parts(bad, "none").exit_code == 2);
  }
  CHECK_FALSE(fs::exists(place.file("none_0")));
}

TEST_CASE("plot_log draws several logs as SVG, and as PNG where rsvg-convert is") {
  Context place;
  std::vector<std::string> line = {"speedo", "plot_log", "6", place.file("loss.svg")};
  for (const char* rate : {"0.05", "0.01"}) {
    const Outcome trained =
        place.run({"speedo", "train", "-solver", place.write_solver(), "--lr", rate});
    REQUIRE(trained.exit_code == 0);
    line.push_back(place.write(std::string("rate ") + rate + ".log", trained.errors));
  }
  const Outcome drawn = place.run(line);
  INFO(drawn.errors);
  REQUIRE(drawn.exit_code == 0);
  const std::string svg = place.read("loss.svg");
  CHECK(svg.find(">Train loss vs. Iters</text>") != std::string::npos);
  CHECK(svg.find(">rate 0.05.log</text>") != std::string::npos);
  CHECK(svg.find(">rate 0.01.log</text>") != std::string::npos);
  line[2] = "0";
  line[3] = place.file("accuracy.png");
  const Outcome png = place.run(line);
  if (png.exit_code == 0) {
    CHECK(place.read("accuracy.png").starts_with("\x89PNG"));
  } else {
    CHECK(png.exit_code == 65);
    CHECK(png.error_line().find("package librsvg2-bin") != std::string::npos);
  }
  line[3] = place.file("accuracy.gif");
  CHECK(place.run(line).exit_code == 2);
  line[2] = "8";
  CHECK(place.run(line).exit_code == 2);
  line[2] = "1";
  line[3] = place.file("x.svg");
  line.back() = place.write("other.log", "nothing\n");
  CHECK(place.run(line).exit_code == 65);
  CHECK_FALSE(fs::exists(place.file("x.svg")));
}

TEST_CASE("draw_net writes a graph, and a picture where Graphviz is") {
  Context place;
  const std::string net = place.write_net();
  REQUIRE(
      place.run({"speedo", "draw_net", net, place.file("net.dot"), "--phase=TRAIN"}).exit_code ==
      0);
  const std::string graph = place.read("net.dot");
  CHECK(graph.starts_with("digraph \"noise\" {\n  rankdir=LR;\n"));
  CHECK(graph.find("\"ip1_InnerProduct\" -> \"ip1_blob\" [label=\"16\"];") != std::string::npos);
  CHECK(graph.find("\"relu1_ReLU\" [label=\"relu1\\n(ReLU)\", shape=record, style=filled, "
                   "fillcolor=\"#90EE90\"];") != std::string::npos);
  CHECK(graph.find("accuracy") == std::string::npos);
  for (const std::string output : {"net", "net.", "net.jpgg", "net.svg.old"}) {
    const Outcome refused = place.run({"speedo", "draw_net", net, place.file(output)});
    CHECK(refused.exit_code == 2);
    CHECK(refused.error_line().find(".dot, .gv, .svg") != std::string::npos);
  }
  const Outcome drawn = place.run({"speedo", "draw_net", net, place.file("net.svg")});
  if (drawn.exit_code == 0) {
    CHECK(place.read("net.svg").find("<svg") != std::string::npos);
  } else {
    CHECK(drawn.error_line().find("package graphviz") != std::string::npos);
  }
}

TEST_CASE("caffe: Caffe's commands and flags, before the command as well as behind it") {
  Context place;
  const std::string solver = place.write_solver();
  const Outcome train = place.run({"caffe", "train", "-solver=" + solver, "--gpu", "0,1",
                                   "-iterations", "7", "-logtostderr=1", "-log_dir", "/nowhere"});
  INFO(train.errors);
  REQUIRE(train.exit_code == 0);
  CHECK(train.errors.find("caffe: -gpu 0,1: ") != std::string::npos);
  CHECK(train.errors.find("Iteration 30 (") != std::string::npos);
  const std::string model = place.file("snap_iter_40.caffemodel");
  REQUIRE(fs::exists(model));
  const Outcome resumed = place.run(
      {"caffe", "-snapshot", place.file("snap_iter_40.solverstate"), "-solver", solver, "train"});
  CHECK(resumed.exit_code == 0);
  const Outcome test = place.run({"caffe", "test", "-model", place.file("net.prototxt"), "-weights",
                                  model, "-iterations=2", "-solver", "unused"});
  CHECK(test.exit_code == 0);
  CHECK(test.errors.find("Running for 2 iterations.") != std::string::npos);
  CHECK(test.errors.find("Batch 1, accuracy = 1") != std::string::npos);
  const Outcome time = place.run(
      {"caffe", "time", "-model", "absent", "-iterations", "1", "-phase=TEST", "-model",
       place.file("net.prototxt")});
  CHECK(time.exit_code == 0);
  CHECK(time.errors.find("*** Benchmark ends ***") != std::string::npos);
}

TEST_CASE("caffe: errors have exit codes that are not 0, and the usage tells the commands") {
  Context place;
  const Outcome query = place.run({"caffe", "device_query", "-gpu", "0"});
  // By what is missing here: CUDA in this build, a driver, or nothing.
  const bool has_gpu = query.exit_code == 0;
  CHECK((has_gpu || query.exit_code == 64 || query.exit_code == 65));
  CHECK((has_gpu ? query.output : query.error_line()).find("NVIDIA") != std::string::npos);
  CHECK(place.run({"caffe", "train"}).exit_code == 2);
  CHECK(place.run({"caffe", "train", "-solver", "none.prototxt"}).exit_code == 64);
  CHECK(place.run({"caffe", "test", "-model", place.write_net(), "-weights", "none.caffemodel"})
            .exit_code == 65);
  const Outcome unknown = place.run({"caffe", "trian", "-solver", "x"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.error_line().find("did you mean train?") != std::string::npos);
  CHECK(place.run({"caffe", "train", "test"}).exit_code == 2);
  CHECK(place.run({"caffe", "train", "-solvr", "x"}).error_line().find("did you mean --solver?") !=
        std::string::npos);
  const Outcome none = place.run({"caffe"});
  CHECK(none.exit_code == 2);
  CHECK(none.errors.find("device_query") != std::string::npos);
  for (const char* flag : {"-helpshort", "-helpfull"}) {
    const Outcome usage = place.run({"caffe", flag, "train"});
    CHECK(usage.exit_code == 0);
    CHECK(usage.output.find("usage: caffe <command> <args>") == 0);
  }
  CHECK(place.run({"caffe", "-gpu", "0", "-version"}).exit_code == 0);
  const Outcome help = place.run({"caffe", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.output.find("usage: caffe <command> <args>") == 0);
}

TEST_CASE("caffe: -gpu takes numbers, all or nothing; -flagfile is a part of the line") {
  Context place;
  const std::string solver = place.write_solver();
  const auto error_with = [&](const std::vector<std::string>& gpu) {
    std::vector<std::string> line = {"caffe", "train", "-solver", solver};
    line.insert(line.end(), gpu.begin(), gpu.end());
    const Outcome refused = place.run(line);
    CHECK(refused.exit_code == 2);
    return refused.error_line();
  };
  CHECK(error_with({"-gpu"}).find("-gpu needs a value") != std::string::npos);
  for (const char* value : {"x", "0,", "-1", "0,all", "1.5", " "}) {
    CHECK(error_with({std::string("-gpu=") + value}).find("-gpu takes the number of a GPU") !=
          std::string::npos);
  }
  CHECK(place.run({"caffe", "device_query", "-gpu", "x"}).exit_code == 2);
  const std::string flags = place.write("flags", "# mine\n-solver=" + solver + "\n-gpu=\n");
  const Outcome train = place.run({"caffe", "train", "-gpu", "x", "-flagfile", flags});
  CHECK(train.exit_code == 0);
  CHECK(train.errors.find("caffe: -gpu") == std::string::npos);
  CHECK(place.run({"caffe", "train", "-solver", solver, "-gpu", ""}).exit_code == 0);
  const Outcome absent = place.run({"caffe", "train", "-flagfile=none"});
  CHECK(absent.exit_code != 0);
  CHECK(absent.error_line().find("'none'") != std::string::npos);
}

TEST_CASE("old prototxts and models are brought to the newest form") {
  Context place;
  const std::string old = place.write("old.prototxt", R"(name: "old"
    layers { name: "data" type: DATA top: "data" top: "label"
             data_param { source: "x" batch_size: 2 scale: 0.5 } }
    layers { name: "relu" type: RELU bottom: "data" top: "data" })");
  REQUIRE(
      place.run({"speedo", "upgrade_net_proto_text", old, place.file("new.prototxt")}).exit_code ==
      0);
  const std::string text = place.read("new.prototxt");
  CHECK(text.find("transform_param {\n    scale: 0.5\n  }") != std::string::npos);
  CHECK(text.find("type: \"ReLU\"") != std::string::npos);
  const std::string solver =
      place.write("old_solver.prototxt", "solver_type: ADAGRAD base_lr: 1\n");
  REQUIRE(place.run({"speedo", "upgrade_solver_proto_text", solver, place.file("new_solver")})
              .exit_code == 0);
  CHECK(place.read("new_solver") == "base_lr: 1\ntype: \"AdaGrad\"\n");
  CHECK(place.run({"speedo", "upgrade_net_proto_text", "none", place.file("x")}).exit_code == 64);
  place.write("bad.caffemodel", "no model");
  CHECK(place
            .run({"speedo", "upgrade_net_proto_binary", place.file("bad.caffemodel"),
                  place.file("x")})
            .exit_code == 65);
}

TEST_CASE("the tools make of Caffe's files what Caffe's tools made of them", "[shared]") {
  const auto sets = shared_fixtures("golden/datasets"), old = shared_fixtures("golden/upgrade");
  if (!sets || !old) SPEEDO_SKIP(no_shared_fixtures("golden/datasets"));
  Context place;
  const auto bytes = [](const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const std::string images = (*sets / "images").string() + "/";
  const std::string list = (*sets / "images.txt").string();
  REQUIRE(place
              .run({"speedo", "convert_imageset", "-backend=datumfile", images, list,
                    place.file("color")})
              .exit_code == 0);
  CHECK(place.read("color") == bytes(*sets / "color.datumfile"));
  REQUIRE(place
              .run({"speedo", "convert_imageset", "-backend=datumfile", "-encoded", images, list,
                    place.file("encoded")})
              .exit_code == 0);
  CHECK(place.read("encoded") == bytes(*sets / "encoded_png.datumfile"));
  for (const char* database : {"color_lmdb", "color_leveldb"}) {
    REQUIRE(
        place.run({"speedo", "compute_image_mean", (*sets / database).string(), place.file("mean")})
            .exit_code == 0);
    CHECK(place.read("mean") == bytes(*sets / "mean.binaryproto"));
  }
  for (const auto& entry : fs::directory_iterator(*old)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".in.prototxt")) continue;
    INFO(name);
    const std::string base = name.substr(0, name.size() - 12);
    const std::string command =
        base.starts_with("solver") ? "upgrade_solver_proto_text" : "upgrade_net_proto_text";
    REQUIRE(place.run({"speedo", command, entry.path().string(), place.file("out")}).exit_code ==
            0);
    CHECK(place.read("out") == bytes(*old / (base + ".out.prototxt")));
  }
}

}  // namespace
}  // namespace speedo::test
