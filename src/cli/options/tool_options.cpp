// Of the commands that carry the names of Caffe's tools; their flags are Caffe's.

#include "cli/options/option_groups.hpp"

namespace speedo {

namespace {

constexpr std::string_view kImagesGroup = "Images";
constexpr std::string_view kDatabaseGroup = "Database";
constexpr std::string_view kResultGroup = "Result";
constexpr Programs kImageSets{Program::kConvertImageset};
constexpr Programs kImageMeans{Program::kComputeImageMean};
constexpr Programs kUpgrades{Program::kUpgradeNetText, Program::kUpgradeNetBinary,
                             Program::kUpgradeSolverText};
constexpr Programs kFeatures{Program::kExtractFeatures};
constexpr Programs kLogs{Program::kParseLog};
constexpr Programs kDrawings{Program::kDrawNet};

constexpr Option argument(std::string_view name, ValueType type, Programs programs,
                          std::string_view sentence, bool required = true) {
  return {.name = name,
          .type = type,
          .programs = programs,
          .sentence = sentence,
          .required = required,
          .place = OptionPlace::kArgument};
}

constexpr Option kToolOptions[] = {
    argument("root-folder", file(), kImageSets, "Folder of the images, put before each name"),
    argument("list", file(), kImageSets, "List of images, a line FILE LABEL for each"),
    argument("database", file(), kImageSets, "Database to write"),
    {.name = "gray",
     .type = on_off(),
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "Read the images as gray ones"},
    {.name = "shuffle",
     .type = on_off(),
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "Write the images in an order drawn at random"},
    {.name = "seed",
     .type = whole(0),
     .otherwise = "drawn and logged",
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "Of that order"},
    {.name = "resize-width",
     .type = whole(0, 65535),
     .unit = "pixels",
     .value = "0",
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "Stretch the images to this width; 0: not"},
    {.name = "resize-height",
     .type = whole(0, 65535),
     .unit = "pixels",
     .value = "0",
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "Stretch the images to this height; 0: not"},
    {.name = "check-size",
     .type = on_off(),
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "Refuse images of another size than the first"},
    {.name = "encoded",
     .type = on_off(),
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "Store the images as files, not as pixels"},
    {.name = "encode-type",
     .type = text("WORD", "png jpg"),
     .otherwise = "as each file's name says",
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "As such files, png or jpg; implies --encoded"},
    {.name = "on-bad-record",
     .type = one_of("skip abort"),
     .value = "skip",
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "An image that cannot be read: skip leaves it out, counts and reports it, abort "
                 "ends with its error"},
    {.name = "threads",
     .type = threads(),
     .otherwise = "as many as the processors that may be used",
     .programs = kImageSets,
     .group = kImagesGroup,
     .sentence = "Threads that decode"},
    {.name = "backend",
     .type = one_of("lmdb leveldb datumfile"),
     .value = "lmdb",
     .programs = kImageSets,
     .group = kDatabaseGroup,
     .sentence = "lmdb, leveldb or datumfile"},
    {.name = "force",
     .type = on_off(),
     .programs = kImageSets | kFeatures,
     .group = kDatabaseGroup,
     .sentence = "Replace databases that are there"},

    argument("input", file(), kImageMeans, "Database or data file"),
    argument("output", file(), kImageMeans, "File to write, usually mean.binaryproto", false),
    {.name = "backend",
     .type = one_of("lmdb leveldb datumfile"),
     .otherwise = "what the input looks like",
     .programs = kImageMeans,
     .group = kDatabaseGroup,
     .sentence = "lmdb, leveldb or datumfile"},

    argument("input", file(), kUpgrades, "File in an old form"),
    argument("output", file(), kUpgrades, "File to write, in the newest form"),

    argument("weights", file(), kFeatures, ".caffemodel to use"),
    argument("model", file(), kFeatures, "Net prototxt, with data in its TEST phase"),
    argument("blobs", text("NAME,..."), kFeatures, "Blobs whose values are features"),
    argument("databases", text("PATH,..."), kFeatures, "Database to write for each blob"),
    argument("batches", whole(1), kFeatures, "Mini-batches to run"),
    argument("backend", one_of("lmdb leveldb datumfile"), kFeatures, "lmdb, leveldb or datumfile"),
    argument("device", text("WORD"), kFeatures,
             "CPU; GPU computes on the CPU, too, unless --gpu names one", false),
    argument("device-id", text("N"), kFeatures, "Accepted, without effect", false),

    argument("log", file(), kLogs, "Log of a training"),
    argument("folder", file(), kLogs, "Where the tables LOG.train and LOG.test go"),
    {.name = "delimiter",
     .type = text("C"),
     .value = ",",
     .programs = kLogs,
     .group = kResultGroup,
     .sentence = "Character between values"},
    {.name = "verbose",
     .type = on_off(),
     .programs = kLogs,
     .group = kResultGroup,
     .sentence = "Print the names of the tables"},

    argument("input", file(), kDrawings, "Net prototxt"),
    argument("output", file(), kDrawings,
             "File to write: .dot is the graph as text, .svg, .png and .pdf are drawn by Graphviz"),
    {.name = "rankdir",
     .type = one_of("LR RL TB BT"),
     .value = "LR",
     .programs = kDrawings,
     .group = kResultGroup,
     .sentence = "Where the net runs to: LR, from left to right, RL, TB or BT"},
    {.name = "phase",
     .type = one_of("ALL TRAIN TEST"),
     .value = "ALL",
     .programs = kDrawings,
     .group = kResultGroup,
     .sentence = "Layers to draw: ALL, or those of TRAIN or TEST"},
    {.name = "display-lrm",
     .type = on_off(),
     .programs = kDrawings,
     .group = kResultGroup,
     .sentence = "Show the layers' lr_mult"},
};

}  // namespace

std::span<const Option> tool_options() { return kToolOptions; }

}  // namespace speedo
