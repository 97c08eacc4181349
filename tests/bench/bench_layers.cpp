// Every kind of layer of the published nets on the CPU backend, with their shapes, in each layout,
// beside what this machine's matrix product and memory reach in the same run.
//
//   bench_layers [threads] [net, layer or the start of one]

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/layer_bench.hpp"

namespace speedo::bench {
namespace {

constexpr auto kMax = PoolingShape::Method::kMax;
constexpr auto kAverage = PoolingShape::Method::kAverage;
constexpr auto kAcross = LrnShape::Region::kAcross;
constexpr auto kWithin = LrnShape::Region::kWithin;

void run_families(LayerBench& bench) {
  bench.vectors("vectors/64k", 1 << 16);
  bench.vectors("vectors/8M", 1 << 23);
  bench.rows("rows/channels", 32 * 64, 56 * 56);
  bench.rows("rows/features", 4096, 64);
  bench.other_losses("losses/classes", 64, 1000);
  bench.other_losses("losses/pixels", 8, 1 << 18);
  bench.unfold("unfold/3x3", {8, 64, 56, 0, 3, 1, 1});
}

void run_small_nets(LayerBench& bench) {
  bench.convolution("lenet/conv1", {64, 1, 28, 20, 5});
  bench.convolution("lenet/conv2", {64, 20, 12, 50, 5});
  bench.pooling("lenet/pool1", kMax, {64, 20, 24, 12, 2, 2});
  bench.pooling("lenet/pool2", kMax, {64, 50, 8, 4, 2, 2});
  bench.inner_product("lenet/ip1", 64, 800, 500);
  bench.inner_product("lenet/ip2", 64, 500, 10);
  bench.convolution("cifar10/conv1", {100, 3, 32, 32, 5, 1, 2});
  bench.convolution("cifar10/conv2", {100, 32, 16, 32, 5, 1, 2});
  bench.convolution("cifar10/conv3", {100, 32, 8, 64, 5, 1, 2});
  bench.pooling("cifar10/pool1", kMax, {100, 32, 32, 16, 3, 2});
  bench.pooling("cifar10/pool2", kAverage, {100, 32, 16, 8, 3, 2});
  bench.pooling("cifar10/pool3", kAverage, {100, 64, 8, 4, 3, 2});
  bench.lrn("cifar10/norm1", kWithin, 100, 32, 16, 3);
  bench.lrn("cifar10/norm2", kWithin, 100, 32, 8, 3);
  bench.relu("cifar10/relu2", 100 * 32 * 16 * 16);
  bench.softmax_loss("cifar10/loss", 100, 10);
}

void run_transposed(LayerBench& bench) {
  bench.convolution("dcgan/deconv1", {64, 100, 1, 512, 4, 1, 0, 1, true});
  bench.convolution("dcgan/deconv2", {64, 512, 4, 256, 4, 2, 1, 1, true});
  bench.convolution("dcgan/deconv4", {64, 128, 16, 64, 4, 2, 1, 1, true});
  bench.convolution("dcgan/deconv5", {64, 64, 32, 3, 4, 2, 1, 1, true});
  bench.convolution("fcn/upscore2", {1, 21, 16, 21, 4, 2, 0, 21, true});
  bench.convolution("fcn/upscore8", {1, 21, 70, 21, 16, 8, 0, 21, true});
  bench.convolution("fcn/upscore32", {1, 21, 16, 21, 64, 32, 0, 21, true});
  bench.convolution("fcn/wide_upscore2", {4, 64, 32, 64, 4, 2, 1, 64, true});
}

// One time step's product, and that of all steps at once.
void run_recurrent(LayerBench& bench) {
  bench.inner_product("autoencoder/encode1", 100, 784, 1000);
  bench.inner_product("autoencoder/encode2", 100, 1000, 500);
  bench.inner_product("words/step", 32, 512, 2048);
  bench.inner_product("words/steps", 640, 512, 2048);
  bench.inner_product("lrcn/step", 24, 256, 1024);
  bench.inner_product("lrcn/steps", 384, 4096, 1024);
}

void run_alexnet(LayerBench& bench) {
  bench.convolution("alexnet/conv1", {32, 3, 227, 96, 11, 4});
  bench.convolution("alexnet/conv2", {32, 96, 27, 256, 5, 1, 2, 2});
  bench.convolution("alexnet/conv3", {32, 256, 13, 384, 3, 1, 1});
  bench.convolution("alexnet/conv4", {32, 384, 13, 384, 3, 1, 1, 2});
  bench.convolution("alexnet/conv5", {32, 384, 13, 256, 3, 1, 1, 2});
  bench.relu("alexnet/relu1", 32 * 96 * 55 * 55);
  bench.lrn("alexnet/norm1", kAcross, 32, 96, 55, 5);
  bench.lrn("alexnet/norm2", kAcross, 32, 256, 27, 5);
  bench.pooling("alexnet/pool1", kMax, {32, 96, 55, 27, 3, 2});
  bench.pooling("alexnet/pool5", kMax, {32, 256, 13, 6, 3, 2});
  bench.reorder("alexnet/pool5", 32, 256, 6);
  bench.inner_product("alexnet/fc6", 32, 9216, 4096);
  bench.inner_product("alexnet/fc7", 32, 4096, 4096);
  bench.inner_product("alexnet/fc8", 32, 4096, 1000);
  bench.dropout("alexnet/drop6", 32 * 4096);
  bench.softmax_loss("alexnet/loss", 32, 1000);
  bench.sgd("alexnet/update", 60965224);
  bench.adaptive("alexnet/update", 60965224);
}

void run_googlenet(LayerBench& bench) {
  bench.convolution("googlenet/conv1", {32, 3, 224, 64, 7, 2, 3});
  bench.convolution("googlenet/conv2_reduce", {32, 64, 56, 64, 1});
  bench.convolution("googlenet/conv2", {32, 64, 56, 192, 3, 1, 1});
  bench.convolution("googlenet/3a_5x5_reduce", {32, 192, 28, 16, 1});
  bench.convolution("googlenet/3a_5x5", {32, 16, 28, 32, 5, 1, 2});
  bench.convolution("googlenet/4a_3x3", {32, 96, 14, 208, 3, 1, 1});
  bench.convolution("googlenet/4b_5x5_reduce", {32, 512, 14, 24, 1});
  bench.convolution("googlenet/5b_1x1", {32, 832, 7, 384, 1});
  bench.convolution("googlenet/5b_3x3", {32, 192, 7, 384, 3, 1, 1});
  bench.pooling("googlenet/pool1", kMax, {32, 64, 112, 56, 3, 2});
  bench.pooling("googlenet/3a_pool", kMax, {32, 192, 28, 28, 3, 1, 1});
  bench.pooling("googlenet/4a_pool", kMax, {32, 480, 14, 14, 3, 1, 1});
  bench.pooling("googlenet/5a_pool", kMax, {32, 832, 7, 7, 3, 1, 1});
  bench.pooling("googlenet/pool4", kMax, {32, 832, 14, 7, 3, 2});
  bench.pooling("googlenet/loss1_pool", kAverage, {32, 512, 14, 4, 5, 3});
  bench.pooling("googlenet/pool5", kAverage, {32, 1024, 7, 1, 7, 1});
  bench.lrn("googlenet/norm1", kAcross, 32, 64, 56, 5);
  bench.lrn("googlenet/norm2", kAcross, 32, 192, 56, 5);
  bench.concat("googlenet/3a_output", 32, {64 * 784, 128 * 784, 32 * 784, 32 * 784});
  bench.concat("googlenet/5b_output", 32, {384 * 49, 384 * 49, 128 * 49, 128 * 49});
  bench.inner_product("googlenet/loss1_fc", 32, 2048, 1024);
  bench.inner_product("googlenet/classifier", 32, 1024, 1000);
}

void run_resnet50(LayerBench& bench) {
  bench.convolution("resnet50/conv1", {16, 3, 224, 64, 7, 2, 3});
  bench.convolution("resnet50/2a_branch2a", {16, 64, 56, 64, 1});
  bench.convolution("resnet50/2a_branch2b", {16, 64, 56, 64, 3, 1, 1});
  bench.convolution("resnet50/2a_branch2c", {16, 64, 56, 256, 1});
  bench.convolution("resnet50/3a_branch1", {16, 256, 56, 512, 1, 2});
  bench.convolution("resnet50/4a_branch2b", {16, 256, 14, 256, 3, 1, 1});
  bench.convolution("resnet50/5a_branch2c", {16, 512, 7, 2048, 1});
  bench.batch_norm("resnet50/bn2a_branch2a", 16, 64, 56, true);
  bench.batch_norm("resnet50/bn2a_branch2c", 16, 256, 56, false);
  bench.batch_norm("resnet50/bn5a_branch2c", 16, 2048, 7, false);
  bench.scale("resnet50/scale2a_branch2c", 16, 256, 56);
  bench.sum("resnet50/res2a", 16 * 256 * 56 * 56);
  bench.sum("resnet50/res5a", 16 * 2048 * 7 * 7);
  bench.pooling("resnet50/pool1", kMax, {16, 64, 112, 56, 3, 2});
  bench.reorder("resnet50/res2a", 16, 256, 56);
}

void run_vgg16(LayerBench& bench) {
  bench.convolution("vgg16/conv1_1", {8, 3, 224, 64, 3, 1, 1});
  bench.convolution("vgg16/conv1_2", {8, 64, 224, 64, 3, 1, 1});
  bench.convolution("vgg16/conv2_2", {8, 128, 112, 128, 3, 1, 1});
  bench.convolution("vgg16/conv3_2", {8, 256, 56, 256, 3, 1, 1});
  bench.convolution("vgg16/conv4_2", {8, 512, 28, 512, 3, 1, 1});
  bench.convolution("vgg16/conv5_2", {8, 512, 14, 512, 3, 1, 1});
  bench.pooling("vgg16/pool1", kMax, {8, 64, 224, 112, 2, 2});
  bench.inner_product("vgg16/fc6", 8, 25088, 4096);
}

}  // namespace
}  // namespace speedo::bench

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  if (threads < 1) {
    std::fprintf(stderr, "bench_layers: takes the number of threads, then a part of a name\n");
    return 2;
  }
  speedo::bench::LayerBench bench(threads, argc > 2 ? argv[2] : "");
  bench.print_head();
  speedo::bench::run_families(bench);
  speedo::bench::run_small_nets(bench);
  speedo::bench::run_transposed(bench);
  speedo::bench::run_recurrent(bench);
  speedo::bench::run_alexnet(bench);
  speedo::bench::run_googlenet(bench);
  speedo::bench::run_resnet50(bench);
  speedo::bench::run_vgg16(bench);
  return 0;
}
