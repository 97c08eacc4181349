// Of the commands that work on one net: test, time, net.

#include "cli/options/option_groups.hpp"

namespace speedo {

namespace {

constexpr std::string_view kNetGroup = "Net";
constexpr std::string_view kEvaluationGroup = "Evaluation";

constexpr Option kNetOptions[] = {
    {.name = "model",
     .type = file(),
     .programs = {Program::kTest, Program::kNet},
     .group = kNetGroup,
     .sentence = "Net prototxt",
     .required = true},
    {.name = "model",
     .type = file(),
     .otherwise = "--solver's net",
     .programs = {Program::kTime},
     .group = kNetGroup,
     .sentence = "Net prototxt"},
    {.name = "weights",
     .type = file(),
     .programs = {Program::kTest},
     .group = kNetGroup,
     .sentence = ".caffemodel to score",
     .required = true},
    {.name = "weights",
     .type = file(),
     .otherwise = "what the fillers give",
     .programs = {Program::kTime},
     .group = kNetGroup,
     .sentence = ".caffemodel to use"},
    {.name = "iterations",
     .type = whole(1),
     .unit = "batches",
     .value = "50",
     .programs = {Program::kTest},
     .group = kNetGroup,
     .sentence = "Batches to score"},
    {.name = "top-k",
     .type = text("K,..."),
     .otherwise = "1,5, as far as there are classes",
     .programs = {Program::kTest},
     .group = kEvaluationGroup,
     .sentence = "Evaluate: shares of samples whose class is among the K best answers"},
    {.name = "labels",
     .type = file(),
     .otherwise = "classes have numbers",
     .programs = {Program::kTest},
     .group = kEvaluationGroup,
     .sentence = "Evaluate with these names of classes, one a line"},
    {.name = "report-json",
     .type = file(),
     .otherwise = "none",
     .programs = {Program::kTest},
     .group = kEvaluationGroup,
     .sentence = "Evaluate and write a report as JSON: precision, recall and F1 of each class, "
                 "confusion, calibration"},
    {.name = "report-html",
     .type = file(),
     .otherwise = "none",
     .programs = {Program::kTest},
     .group = kEvaluationGroup,
     .sentence = "Evaluate and write a report as one page with curves"},
    {.name = "scores",
     .type = text("BLOB,BLOB"),
     .otherwise = "what the first Accuracy, else SoftmaxWithLoss layer reads",
     .programs = {Program::kTest},
     .group = kEvaluationGroup,
     .sentence = "Evaluate these blobs: a score for each class, and labels"},
    {.name = "training-steps",
     .old_names = "train",
     .type = on_off(),
     .programs = {Program::kTime},
     .group = kNetGroup,
     .sentence = "Measure training steps: forward, backward and the update (SGD with momentum and "
                 "weight decay unless --solver says otherwise)"},
    {.name = "solver",
     .type = file(),
     .programs = {Program::kTime},
     .group = kNetGroup,
     .sentence = "Solver prototxt of the steps, and its net without --model; implies "
                 "--training-steps"},
    {.name = "iterations",
     .type = whole(1),
     .unit = "passes",
     .value = "50",
     .programs = {Program::kTime},
     .group = kNetGroup,
     .sentence = "Passes or steps"},
    {.name = "exchange",
     .type = whole(1),
     .unit = "workers",
     .programs = {Program::kNet},
     .group = kNetGroup,
     .sentence = "Show how each layer's gradients travel between so many workers with "
                 "--replicated, and the bytes of a round"},
    {.name = "phase",
     .type = text("WORD", "TRAIN TEST"),
     .otherwise = "TRAIN",
     .programs = {Program::kTime, Program::kNet},
     .group = kNetGroup,
     .sentence = "TRAIN or TEST"},
};

}  // namespace

std::span<const Option> net_options() { return kNetOptions; }

}  // namespace speedo
