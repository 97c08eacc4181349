// When results are merged, and how. Each stage of a hybrid has these, too.

#include "cli/options/option_groups.hpp"

namespace speedo {

namespace {

constexpr std::string_view kWhenGroup = "Schedule: when results are merged";
constexpr std::string_view kWhatGroup = "Update rule: what is merged";
constexpr std::string_view kWeightsGroup = "Weights: how much of it";

constexpr Option kScheduleOptions[] = {
    {.name = "strategy",
     .type = text("WORD",
                  "async sync partial-sync ssp weedout grouping easgd eamsgd sync-easgd averaging"),
     .otherwise = "async",
     .programs = kClustersAndStages,
     .group = kWhenGroup,
     .sentence = "When results are merged: async, sync, partial-sync, ssp, weedout, grouping, "
                 "easgd, eamsgd, sync-easgd, averaging"},
    {.name = "sync",
     .type = on_off(),
     .programs = kClustersAndStages,
     .group = kWhenGroup,
     .sentence = "The same as --strategy sync"},
    {.name = "max-advance",
     .type = whole(1),
     .unit = "runs",
     .otherwise = "2",
     .programs = kClustersAndStages,
     .group = kWhenGroup,
     .sentence = "partial-sync: catch up when the fastest worker leads by so many runs"},
    {.name = "staleness",
     .type = whole(0),
     .unit = "runs",
     .otherwise = "2",
     .programs = kClustersAndStages,
     .group = kWhenGroup,
     .sentence = "ssp: runs that a worker may lead the slowest by"},
    {.name = "weedout",
     .old_names = "drop",
     .type = whole(1),
     .unit = "reporters",
     .otherwise = "1",
     .programs = kClustersAndStages,
     .group = kWhenGroup,
     .sentence = "weedout: drop what is not of the last N reporters, or of as many as there are "
                 "workers"},
    {.name = "groups",
     .type = text("FILE|N|auto"),
     .otherwise = "auto",
     .programs = kClustersAndStages,
     .group = kWhenGroup,
     .sentence = "grouping: a file (one group a line, names of workers or hosts), a number of "
                 "groups to measure, or auto"},
    {.name = "regroup-interval",
     .type = whole(0),
     .unit = "reports",
     .otherwise = "0",
     .programs = kClustersAndStages,
     .group = kWhenGroup,
     .sentence = "grouping: reports between measurements; 0: measure once"},
    {.name = "hybrid",
     .type = text("STAGES"),
     .programs = kClusters,
     .group = kWhenGroup,
     .sentence = "Stages one after another, repeated: =maxIter 100 =sync == =maxIter 300 =drop 3 "
                 "('=' for '--', '==' between stages); flags beside it are each stage's defaults"},
    {.name = "hybrid-file",
     .type = file(),
     .programs = kClusters,
     .group = kWhenGroup,
     .sentence = "The same as a TOML file, a [[stage]] each (conf/hybrid.toml)"},
    {.name = "deterministic",
     .type = on_off(),
     .programs = kClusters,
     .group = kWhenGroup,
     .sentence = "Result depends on seed and number of workers only, not on threads or "
                 "processors: takes exactly --workers N, on one kind of device; needs rounds, a "
                 "seed, an update rule without state on the workers and, on x86-64, AVX2 and FMA; "
                 "slower"},

    {.name = "gradient-only",
     .type = on_off(),
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "Workers send gradients; the master applies the solver's rule, decay and "
                 "learning rate"},
    {.name = "communication-period",
     .old_names = "train average-every",
     .type = whole(1),
     .unit = "mini-batches",
     .otherwise = "1; averaging 5",
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "Mini-batches a worker trains per exchange"},
    {.name = "moving-rate",
     .type = number(),
     .otherwise = "with easgd 0.9 / workers",
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "Elastic averaging: workers keep weights of their own, drawn to the master's by "
                 "this, above 0 and at most 1; in rounds of N workers at most 1/N counts"},
    {.name = "elastic-side",
     .type = one_of("worker master"),
     .otherwise = "worker",
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "Who computes the elastic step: worker, or master as in SpeeDO, with twice the "
                 "bytes"},
    {.name = "save-updater",
     .type = one_of("keep average reset"),
     .otherwise = "keep; averaging average",
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "Solver history (momentum, Adam's means) of full updates: each worker may keep "
                 "its own (keep), average it with the weights (average), or reset it before each "
                 "run"},
    {.name = "factor",
     .type = number(),
     .otherwise = "1",
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "Divide each worker's update by this"},
    {.name = "skip",
     .type = amount(),
     .otherwise = "0",
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "Leave out update elements, in rounds those of their mean, smaller than this; "
                 "not of BatchNorm's statistics"},
    {.name = "codec",
     .type = filled_text("NAME"),
     .otherwise = "none",
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "What workers send through the store is coded so: none, bf16, fp16, int8, "
                 "threshold[:T] (only what reached T, as T; without T the largest fifth, as means "
                 "of 512), topk[:P] (the largest P percent, 10), onebit (signs and two means). "
                 "What a codec leaves out goes with the next contribution; BatchNorm's statistics "
                 "travel whole. Shared memory needs none. auto: only what loses nothing, which is "
                 "none, or with --replicated factors where they are fewer bytes"},
    {.name = "no-error-feedback",
     .type = on_off(),
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "What a codec leaves out is lost, instead of going with the next contribution"},

    {.name = "replicated",
     .type = on_off(),
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "With --sync --gradient-only: every worker applies the mean gradient to weights "
                 "of its own, so that only gradients travel, those of large inner products as "
                 "factors (not from GPUs to a master on the CPU). For slow networks, with --shards "
                 "too; not through shared memory"},
    {.name = "no-factors",
     .type = on_off(),
     .programs = kClustersAndStages,
     .group = kWhatGroup,
     .sentence = "--replicated sends whole gradients only"},

    {.name = "staleness-weight",
     .type = on_off(),
     .programs = kClustersAndStages,
     .group = kWeightsGroup,
     .sentence = "Multiply a contribution by 1/(1 + merges since its weights were read)"},
    {.name = "lr-scaling",
     .type = one_of("none linear sqrt"),
     .otherwise = "none",
     .programs = kClustersAndStages,
     .group = kWeightsGroup,
     .sentence = "With sync and averaging: multiply the learning rate by 1 (none), the number of "
                 "workers (linear) or its root (sqrt)"},
    {.name = "lr-warmup",
     .type = whole(0),
     .unit = "iterations",
     .otherwise = "0",
     .programs = kClustersAndStages,
     .group = kWeightsGroup,
     .sentence = "Iterations over which the scaled learning rate is reached"},
};

}  // namespace

std::span<const Option> schedule_options() { return kScheduleOptions; }

}  // namespace speedo
