#include "data/image/transformer.hpp"

#include <set>

#include "core/weight_file.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

caffe::TransformationParameter transform_from(const std::string& text) {
  caffe::TransformationParameter parameter;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &parameter));
  return parameter;
}

Transformer make(const std::string& text, Phase phase = Phase::kTest) {
  auto transformer = Transformer::create(transform_from(text), phase, {});
  REQUIRE(transformer);
  return *transformer;
}

std::vector<float> apply(const Transformer& transformer, const Record& record,
                         std::uint64_t seed = 0) {
  const auto dims = transformer.output_dims({record.channels, record.height, record.width});
  REQUIRE(dims);
  std::vector<float> values(static_cast<std::size_t>(dims->channels * dims->height * dims->width));
  Random random(seed);
  transformer.apply(record, random, values);
  return values;
}

// A 1 x 3 x 4 image: pixel at row r, column c is 10 r + c.
Record grid() {
  Record record;
  record.channels = 1;
  record.height = 3;
  record.width = 4;
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 4; ++column) {
      record.bytes.push_back(static_cast<std::uint8_t>(10 * row + column));
    }
  }
  return record;
}

TEST_CASE("without options pixels become floats") {
  CHECK(apply(make(""), grid()) == std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
}

TEST_CASE("means are subtracted before scaling") {
  CHECK(apply(make("mean_value: 1 scale: 2"), grid())[11] == 44.0F);
  Record two = numbered_record(0, 2, 1, 1);  // pixels 0 and 1
  CHECK(apply(make("mean_value: 4 mean_value: 8 scale: 0.5"), two) ==
        std::vector<float>{-2.0F, -3.5F});
  Record floats = two;
  floats.bytes.clear();
  floats.floats = {0.25F, -3.0F};
  CHECK(apply(make("mean_value: 0.25 scale: 4"), floats) == std::vector<float>{0.0F, -13.0F});
}

TEST_CASE("testing crops in the middle, rounding towards the top left") {
  CHECK(apply(make("crop_size: 2"), grid()) == std::vector<float>{1, 2, 11, 12});
  CHECK(apply(make("crop_size: 3"), grid()) == std::vector<float>{0, 1, 2, 10, 11, 12, 20, 21, 22});
}

TEST_CASE("the mean image is taken at the crop's place") {
  const TempDir folder;
  caffe::BlobProto mean;
  mean.set_num(1);
  mean.set_channels(1);
  mean.set_height(3);
  mean.set_width(4);
  for (const std::uint8_t byte : grid().bytes) mean.add_data(byte);
  REQUIRE(write_blob_file(folder / "mean.binaryproto", mean));
  const std::string text = "mean_file: '" + (folder / "mean.binaryproto").string() + "' ";
  CHECK(apply(make(text + "crop_size: 2"), grid()) == std::vector<float>(4, 0.0F));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(apply(make(text + "crop_size: 2 mirror: true scale: 3", Phase::kTrain), grid(), seed) ==
          std::vector<float>(4, 0.0F));
  }
  const auto other = make(text).output_dims({1, 4, 3});
  check_error(other, ErrorCode::kConfig, "mean file is for images of 1x3x4");
}

TEST_CASE("training crops everywhere, mirrors half the time, and repeats itself by seed") {
  const Transformer transformer = make("crop_size: 2 mirror: true", Phase::kTrain);
  std::set<std::vector<float>> seen;
  int mirrored = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto values = apply(transformer, grid(), seed);
    CHECK(values == apply(transformer, grid(), seed));
    CHECK(values[2] == values[0] + 10);
    CHECK(std::abs(values[1] - values[0]) == 1.0F);
    if (values[1] < values[0]) ++mirrored;
    seen.insert(values);
  }
  CHECK(seen.size() == 12);  // 2 x 3 places, straight or turned
  CHECK(mirrored > 150);
  CHECK(mirrored < 250);
}

TEST_CASE("mirroring turns every row round, whole images too") {
  const Transformer transformer = make("mirror: true");
  std::set<std::vector<float>> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) seen.insert(apply(transformer, grid(), seed));
  CHECK(seen == std::set<std::vector<float>>{{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23},
                                             {3, 2, 1, 0, 13, 12, 11, 10, 23, 22, 21, 20}});
}

TEST_CASE("options that contradict each other or the data are refused") {
  const auto create = [](const std::string& text) {
    return Transformer::create(transform_from(text), Phase::kTrain, {});
  };
  check_error(create("mean_file: 'x' mean_value: 1"), ErrorCode::kConfig, "exclude each other");
  check_error(create("mean_value: nan"), ErrorCode::kConfig, "mean_value is not a finite number");
  check_error(create("mean_file: 'no_such_file'"), ErrorCode::kNotFound, "no_such_file");
  check_error(create("scale: nan"), ErrorCode::kConfig, "scale");
  check_error(make("crop_size: 4").output_dims({1, 3, 4}), ErrorCode::kConfig,
              "crop_size 4 exceeds the image of 3x4");
  check_error(make("mean_value: 1 mean_value: 2").output_dims({3, 3, 4}), ErrorCode::kConfig,
              "2 mean_values are given for 3 channels");
}

TEST_CASE("a mean file that holds something else is refused") {
  const TempDir folder;
  const auto create = [&](const caffe::BlobProto& blob) {
    REQUIRE(write_blob_file(folder / "mean", blob));
    return Transformer::create(transform_from("mean_file: '" + (folder / "mean").string() + "'"),
                               Phase::kTest, {});
  };
  caffe::BlobProto blob;
  blob.mutable_shape()->add_dim(2);
  blob.add_data(1);
  blob.add_data(2);
  check_error(create(blob), ErrorCode::kData, "mean");
  blob.Clear();
  for (const int extent : {1, 1, 2, 2}) blob.mutable_shape()->add_dim(extent);
  blob.add_data(1);
  check_error(create(blob), ErrorCode::kData, "mean");
  // No memory is taken for the 8 GiB that it claims.
  for (const int axis : {2, 3}) blob.mutable_shape()->set_dim(axis, 46340);
  check_error(create(blob), ErrorCode::kData, "holds 1 values where its shape needs 2147395600");
  write_bytes(folder / "mean", "");
  check_error(Transformer::create(transform_from("mean_file: '" + (folder / "mean").string() + "'"),
                                  Phase::kTest, {}),
              ErrorCode::kData, "mean");
}

}  // namespace
}  // namespace speedo
