// HDF5Output layers: what a net wrote, HDF5Data layers read again.

#include <span>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "data/feed_factory.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/sink_factory.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

std::string input_layer(const std::string& name, const std::string& dims) {
  return "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape { " +
         dims + " } } }\n";
}

std::string output_layer(const fs::path& file, const std::string& data = "data",
                         const std::string& label = "label", const std::string& name = "out") {
  return "layer { name: '" + name + "' type: 'HDF5Output' bottom: '" + data + "' bottom: '" +
         label + "' hdf5_output_param { file_name: '" + file.string() + "' } }\n";
}

struct OutputFixture {
  OutputFixture() {
    options.backend = backend.get();
    options.feeds = feeds.get();
    options.sinks = sinks.get();
    options.base = folder.path();
  }
  Result<std::unique_ptr<Net>> create(const std::string& text) const {
    caffe::NetParameter message;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &message));
    return Net::create(message, options);
  }
  std::unique_ptr<Net> make(const std::string& text) const {
    auto net = create(text);
    INFO((net ? "" : net.error().message));
    REQUIRE(net.has_value());
    return std::move(net).value();
  }
  std::string refusal(const std::string& text) const {
    const auto net = create(text);
    REQUIRE_FALSE(net.has_value());
    CHECK(net.error().message.find('\n') == std::string::npos);
    return net.error().message;
  }
  // What the folder holds.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  TempDir folder;
  std::unique_ptr<Backend> backend = make_cpu_backend(1);
  std::unique_ptr<FeedFactory> feeds = make_feed_factory();
  std::unique_ptr<SinkFactory> sinks = make_sink_factory();
  NetOptions options;
};

const std::string kInputs = input_layer("data", "dim: 3 dim: 2") + input_layer("label", "dim: 3");

TEST_CASE("HDF5Output writes what HDF5Data reads") {
  const OutputFixture fixture;
  const fs::path file = fixture.folder / "out.h5";
  {
    const auto net = fixture.make(
        kInputs + input_layer("selector", "dim: 3") +
        "layer { name: 'f' type: 'Filter' bottom: 'data' bottom: 'label' bottom: 'selector' "
        "top: 'd' top: 'l' }\n" +
        output_layer(file, "d", "l"));
    float next = 0.0F;
    for (const std::vector<float>& selector :
         {std::vector<float>{1, 1, 1}, {0, 0, 0}, {0, 1, 0}, {1, 0, 1}}) {
      std::vector<float> data(6), label(3);
      for (float& value : data) value = next += 1.0F;
      for (std::size_t i = 0; i < label.size(); ++i) label[i] = -data[2 * i];
      net->blob("data")->set_values(*fixture.backend, data);
      net->blob("label")->set_values(*fixture.backend, label);
      net->blob("selector")->set_values(*fixture.backend, selector);
      REQUIRE(net->forward().has_value());
    }
    CHECK_FALSE(fs::exists(file));
    REQUIRE(net->finish().has_value());
    const auto late = net->forward();
    REQUIRE_FALSE(late.has_value());
    CHECK(late.error().message ==
          "layer 'out' (HDF5Output): its file is complete: nothing more "
          "can be written");
    CHECK(net->finish().has_value());
  }
  CHECK(fixture.files() == std::vector<std::string>{"out.h5"});
  const auto written = Hdf5Reader::open(file);
  REQUIRE(written.has_value());
  CHECK(written->dims("data").value() == std::vector<std::int64_t>{6, 2, 1, 1});
  CHECK(written->dims("label").value() == std::vector<std::int64_t>{6, 1, 1, 1});

  write_bytes(fixture.folder / "list", file.string());
  const auto reader = fixture.make(
      "layer { name: 'in' type: 'HDF5Data' top: 'data' top: 'label' "
      "hdf5_data_param { source: 'list' batch_size: 6 } }");
  REQUIRE(reader->forward().has_value());
  CHECK(reader->blob("data")->values(*fixture.backend) ==
        std::vector<float>{1, 2, 3, 4, 5, 6, 15, 16, 19, 20, 23, 24});
  CHECK(reader->blob("label")->values(*fixture.backend) ==
        std::vector<float>{-1, -3, -5, -15, -19, -23});
}

TEST_CASE("HDF5Output leaves nothing behind that nobody finished, that is empty or rehearsed") {
  const OutputFixture fixture;
  const std::string text = kInputs + output_layer(fixture.folder / "out.h5");
  REQUIRE(fixture.make(text)->forward().has_value());
  CHECK(fixture.files().empty());
  REQUIRE(fixture.make(text)->finish().has_value());
  CHECK(fixture.files().empty());

  const auto rehearsed = fixture.make(text);
  REQUIRE(rehearsed->rehearse().has_value());
  for (std::size_t layer = 0; layer < rehearsed->layers().size(); ++layer) {
    REQUIRE(rehearsed->rehearse_layer(layer).has_value());
  }
  REQUIRE(rehearsed->finish().has_value());
  CHECK(fixture.files().empty());
}

TEST_CASE("HDF5Output refuses what it cannot write") {
  OutputFixture fixture;
  const fs::path file = fixture.folder / "out.h5";
  const std::string missing = fixture.refusal(kInputs + output_layer(fixture.folder / "no/out.h5"));
  CHECK(missing.find("layer 'out' (HDF5Output): cannot write '") == 0);
  CHECK(missing.find("does its folder exist") != std::string::npos);
  CHECK(fixture.refusal(kInputs + output_layer("")).find("has no file_name") != std::string::npos);
  CHECK(fixture
            .refusal(kInputs + output_layer(file) +
                     output_layer(fixture.folder / "./out.h5", "data", "label", "again"))
            .find("layer 'again' (HDF5Output): '") == 0);
  CHECK(fixture
            .refusal(input_layer("data", "dim: 3") + input_layer("label", "dim: 2") +
                     output_layer(file))
            .find("need as many items: their shapes are 3 (3) and 2 (2)") != std::string::npos);
  CHECK(fixture
            .refusal(input_layer("data", "dim: 2 dim: 0") + input_layer("label", "dim: 2") +
                     output_layer(file))
            .find("items of 1 to 4 axes") != std::string::npos);
  CHECK(fixture
            .refusal(input_layer("data", "dim: 1 dim: 1 dim: 1 dim: 1 dim: 1") +
                     input_layer("label", "dim: 1") + output_layer(file))
            .find("items of 1 to 4 axes") != std::string::npos);
  fixture.options.sinks = nullptr;
  CHECK(fixture.refusal(kInputs + output_layer(file)).find("cannot be used here") !=
        std::string::npos);
  fixture.options.plan_only = true;
  CHECK(fixture.create(kInputs + output_layer(file)).has_value());
  CHECK(fixture.files().empty());
}

TEST_CASE("HDF5Output says when other items follow, or its folder has gone") {
  const OutputFixture fixture;
  fs::create_directory(fixture.folder / "sub");
  const auto net = fixture.make(kInputs + output_layer(fixture.folder / "sub/out.h5"));
  REQUIRE(net->forward().has_value());
  net->blob("data")->reshape({3, 4});
  REQUIRE(net->reshape().has_value());
  const auto other = net->forward();
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().message ==
        "layer 'out' (HDF5Output): items of 4x1x1 cannot follow those of "
        "2x1x1 in dataset 'data'");
  fs::remove_all(fixture.folder / "sub");
  const auto finished = net->finish();
  REQUIRE_FALSE(finished.has_value());
  CHECK(finished.error().code == ErrorCode::kCannotWrite);
  CHECK(finished.error().message.find("layer 'out' (HDF5Output): ") == 0);
}

TEST_CASE("a training that ends completes what its nets wrote: one batch a pass") {
  const OutputFixture fixture;
  const auto output_in = [&](const std::string& phase) {
    std::string layer = output_layer(fixture.folder / (phase + ".h5"), "ip", "label", phase);
    return layer.insert(layer.find("type:"), "include { phase: " + phase + " } ");
  };
  const std::string net =
      "layer { name: 'in' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { "
      "shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 } data_filler { type: 'gaussian' } } }\n"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "
      "num_output: 1 weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n" +
      output_in("TRAIN") + output_in("TEST");
  caffe::SolverParameter solver;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 random_seed: 1 snapshot: 1 "
      "test_iter: 3 test_interval: 2 test_initialization: false net_param { " +
          net + " }",
      &solver));
  int snapshots = 0;
  Solver::Hooks hooks;
  hooks.snapshot = [&](std::int64_t, const caffe::NetParameter&,
                       caffe::SolverState&) -> Result<void> {
    snapshots += 1;
    return {};
  };
  const auto made = Solver::create(solver,
                                   {.backend = fixture.backend.get(),
                                    .feeds = fixture.feeds.get(),
                                    .sinks = fixture.sinks.get(),
                                    .base = fixture.folder.path()},
                                   std::move(hooks));
  INFO((made ? "" : made.error().message));
  REQUIRE(made.has_value());
  REQUIRE((*made)->solve().has_value());
  CHECK(snapshots == 2);
  const auto rows = [&](const std::string& phase) {
    const auto written = Hdf5Reader::open(fixture.folder / (phase + ".h5"));
    REQUIRE(written.has_value());
    return written->dims("data").value().front();
  };
  CHECK(rows("TRAIN") == 2 * 4);  // not those of a pass that only asks for the loss
  CHECK(rows("TEST") == 3 * 4);
}

}  // namespace
}  // namespace speedo
