// forward NET.prototxt: one forward pass of a net with Input layers, which are filled with noise.
// Prints the first values of each output.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/core/net_file.hpp>
#include <speedo/cpu/cpu_backend.hpp>

namespace {

constexpr std::size_t kShown = 10;

void fill_inputs(speedo::Net& net) {
  speedo::Random random(1);
  for (const speedo::Net::LayerView& layer : net.layers()) {
    if (!layer.bottoms.empty()) continue;
    for (speedo::Tensor* input : layer.tops) {
      std::vector<float> noise(static_cast<std::size_t>(input->count()));
      for (float& value : noise) value = random.gaussian(0.0F, 1.0F);
      input->set_values(net.backend(), noise);
    }
  }
}

void print_outputs(const speedo::Net& net) {
  for (const std::string& name : net.output_names()) {
    const speedo::Tensor& output = *net.blob(name);
    const std::vector<float> values = output.values(net.backend());
    std::printf("%s: %s:", name.c_str(), speedo::to_string(output.shape()).c_str());
    for (std::size_t i = 0; i < std::min(kShown, values.size()); ++i) std::printf(" %g", values[i]);
    std::printf("\n");
  }
}

speedo::Result<void> run(const char* prototxt) {
  speedo::Result<std::unique_ptr<speedo::Backend>> backend =
      speedo::make_cpu_backend(speedo::CpuOptions{});
  if (!backend) return backend.error();
  speedo::NetOptions options;
  options.phase = speedo::Phase::kTest;
  options.backend = backend->get();
  options.trains = false;
  speedo::Result<std::unique_ptr<speedo::Net>> net = speedo::read_net(prototxt, options);
  if (!net) return net.error();
  fill_inputs(**net);
  const speedo::Result<float> loss = (*net)->forward();
  if (!loss) return loss.error();
  print_outputs(**net);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: forward NET.prototxt\n");
    return 2;
  }
  const speedo::Result<void> done = run(argv[1]);
  if (done) return 0;
  std::fprintf(stderr, "forward: %s\n", done.error().message.c_str());
  return 1;
}
