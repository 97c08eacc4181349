#include <string_view>

#include "cli/process.hpp"
#include "main/commands.hpp"

namespace {

// Under the name of Caffe's program it is that.
bool is_called_caffe(int argc, char** argv) {
  const std::string_view name = argc > 0 ? argv[0] : "";
  return name.substr(name.rfind('/') + 1) == "caffe";
}

}  // namespace

int main(int argc, char** argv) {
  if (is_called_caffe(argc, argv)) {
    return speedo::run_process("caffe", argc, argv, [](const auto& arguments, const auto& secrets) {
      return speedo::caffe_main(arguments, secrets);
    });
  }
  // A password is not passed on to what it starts.
  return speedo::run_process("speedo", argc, argv, [](const auto& arguments, const auto& secrets) {
    return speedo::speedo_main(arguments, secrets);
  });
}
