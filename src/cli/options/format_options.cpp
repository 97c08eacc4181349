// Of the commands that write nets and weights for other programs, and read theirs.

#include "cli/options/option_groups.hpp"

namespace speedo {

namespace {

constexpr std::string_view kFormatFilesGroup = "Files";
constexpr std::string_view kFormatNetGroup = "Net";
constexpr Programs kFormats{Program::kExport, Program::kImport};

constexpr Option kFormatOptions[] = {
    {.name = "format",
     .type = one_of("onnx safetensors deploy h5"),
     .programs = {Program::kExport},
     .group = kFormatFilesGroup,
     .sentence = "What to write: onnx, safetensors, deploy (prototxt and .caffemodel) or h5 "
                 "(.caffemodel.h5)",
     .required = true},
    {.name = "model",
     .type = file(),
     .programs = {Program::kExport},
     .group = kFormatFilesGroup,
     .sentence = "Net prototxt, of a training net or a deployed one; onnx and deploy need it"},
    {.name = "model",
     .type = file(),
     .programs = {Program::kImport},
     .group = kFormatFilesGroup,
     .sentence = "Net prototxt, of a training net or a deployed one",
     .required = true},
    {.name = "weights",
     .type = file(),
     .programs = {Program::kExport},
     .group = kFormatFilesGroup,
     .sentence = ".caffemodel or .caffemodel.h5 to write; deploy goes without, for the prototxt "
                 "alone"},
    {.name = "weights",
     .type = file(),
     .programs = {Program::kImport},
     .group = kFormatFilesGroup,
     .sentence = "Safetensors file to read",
     .required = true},
    {.name = "output",
     .type = file(),
     .programs = kFormats,
     .group = kFormatFilesGroup,
     .sentence = "File to write; one that is there is replaced",
     .required = true},
    {.name = "shape",
     .type = text("DIMS"),
     .otherwise = "as the TEST data have it",
     .programs = kFormats,
     .group = kFormatNetGroup,
     .sentence = "Shape of the net's input, as 1,3,227,227; of several: BLOB=DIMS with semicolons "
                 "between them"},
    {.name = "batch",
     .type = whole(1),
     .unit = "items",
     .otherwise = "as the shape has it",
     .programs = {Program::kExport},
     .group = kFormatNetGroup,
     .sentence = "First extent of every input"},
    {.name = "outputs",
     .type = text("BLOB,..."),
     .otherwise = "all outputs of the TEST net, losses as probabilities",
     .programs = {Program::kExport},
     .group = kFormatNetGroup,
     .sentence = "Blobs that are wanted; what they do not need is left out"},
    {.name = "partial",
     .type = on_off(),
     .programs = {Program::kImport},
     .group = kFormatNetGroup,
     .sentence = "Take what is there by name: what the file lacks stays as the fillers make it, "
                 "what the net lacks is left out; both are told of"},
};

}  // namespace

std::span<const Option> format_options() { return kFormatOptions; }

}  // namespace speedo
