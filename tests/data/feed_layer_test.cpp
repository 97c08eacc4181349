#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "data/feed_factory.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

// A net of one data layer over a datumfile of 10 numbered records, batches of 2.
struct FeedFixture {
  explicit FeedFixture(const std::string& more = "") {
    write_numbered(folder / "d", RecordFormat::kDatumfile, 10);
    caffe::LayerParameter layer = layer_from(
        "name: 'in' type: 'Data' top: 'data' top: 'label' data_param { source: 'd' batch_size: 2 "
        "backend: DATUMFILE } " +
        more);
    *message.add_layer() = layer;
    options.backend = backend.get();
    options.feeds = feeds.get();
    options.base = folder.path();
  }

  float first_label(Net& net) {
    const Tensor& labels = *net.blob("label");
    std::vector<float> values(2);
    backend->device().download(values, labels.data());
    return values[0];
  }

  TempDir folder;
  std::unique_ptr<Backend> backend = make_cpu_backend(1);
  std::unique_ptr<FeedFactory> feeds = make_feed_factory();
  caffe::NetParameter message;
  NetOptions options;
};

TEST_CASE("a data layer goes on from batch to batch, and along the span it is given") {
  FeedFixture fixture;
  const auto net = Net::create(fixture.message, fixture.options);
  REQUIRE(net);
  Net& data = **net;
  CHECK(data.blob("data")->shape() == Shape{2, 2, 3, 4});
  CHECK(data.blob("label")->shape() == Shape{2});
  for (const float label : {0.0F, 2.0F, 4.0F}) {
    REQUIRE(data.forward());
    CHECK(fixture.first_label(data) == label);
  }
  data.set_batch_span({.first = 1, .count = 2, .next = 4});
  for (const float label : {2.0F, 4.0F, 8.0F, 0.0F, 2.0F}) {
    REQUIRE(data.forward());
    CHECK(fixture.first_label(data) == label);
  }
  data.set_batch_span({.first = 3, .count = 1, .next = 3});
  for (const float label : {6.0F, 6.0F}) {
    REQUIRE(data.forward());
    CHECK(fixture.first_label(data) == label);
  }
}

TEST_CASE("workers of one start-offset job begin at their share of the data") {
  FeedFixture fixture;
  fixture.options.start_fraction = 0.5;
  const auto net = Net::create(fixture.message, fixture.options);
  REQUIRE(net);
  REQUIRE((*net)->forward());
  CHECK(fixture.first_label(**net) == 5.0F);
}

TEST_CASE("errors of a data layer carry its name") {
  FeedFixture missing;
  missing.message.mutable_layer(0)->mutable_data_param()->set_source("gone");
  check_error(Net::create(missing.message, missing.options), ErrorCode::kNotFound,
              "layer 'in' (Data): data source 'gone'");
  FeedFixture refused;
  refused.options.feeds = nullptr;
  check_error(Net::create(refused.message, refused.options), ErrorCode::kConfig, "layer 'in'");
  FeedFixture third("top: 'third'");
  check_error(Net::create(third.message, third.options), ErrorCode::kConfig, "1 to 2");
}

TEST_CASE("a record that cannot be read stops the pass, with layer, file and record") {
  FeedFixture fixture;
  std::vector<Record> records = numbered_records(4);
  records[3].height = 4;
  records[3].bytes.resize(static_cast<std::size_t>(records[3].count()));
  MemorySource source(records);
  REQUIRE(convert(
      source, {.output = fixture.folder / "d", .format = RecordFormat::kDatumfile, .force = true}));
  const auto net = Net::create(fixture.message, fixture.options);
  REQUIRE(net);
  REQUIRE((*net)->forward());
  check_error((*net)->forward(), ErrorCode::kData, "layer 'in' (Data): record 3 is 2x4x4");
}

}  // namespace
}  // namespace speedo
