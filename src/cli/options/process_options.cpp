// Of every program: what computing may use, what is logged, and where options come from.

#include "cli/compute_options.hpp"
#include "cli/options/option_groups.hpp"
#include "data/parser/parser_processes.hpp"

namespace speedo {

namespace {

constexpr Programs kSharing{Program::kRun, Program::kWorker};
constexpr Programs kNetReaders{Program::kExtractFeatures, Program::kClassify};
constexpr Programs kOneNet =
    kNetReaders | Programs{Program::kTrain, Program::kTest, Program::kTime, Program::kNet};
constexpr Programs kUndivided =
    kOneNet | Programs{Program::kMaster, Program::kPlan, Program::kDoctor};
constexpr Programs kComputing = kSharing | kUndivided | Programs{Program::kLaunch};
constexpr Programs kOnDevices{Program::kRun,  Program::kWorker, Program::kLaunch,
                              Program::kTrain, Program::kTest,   Program::kTime,
                              Program::kExtractFeatures};
constexpr Programs kConverting{Program::kConvert, Program::kMean};
constexpr Programs kAsking{Program::kConfig, Program::kCompletion, Program::kManual,
                           Program::kStatus, Program::kJobs, Program::kDeviceQuery,
                           Program::kToken, Program::kCert};
constexpr Programs kPrinting =
    kTrainers | Programs{Program::kTest, Program::kTime, Program::kProof, Program::kPlan};
constexpr Programs kAllPrograms =
    kComputing | kConverting | kTools | kAsking |
    Programs{Program::kProof, Program::kExport, Program::kImport};

constexpr Programs kReadsFiles = kComputing | kConverting |
                                 Programs{Program::kComputeImageMean, Program::kConvertImageset,
                                          Program::kExport, Program::kImport};

constexpr std::string_view kProgramWords =
    "run launch train test time device_query net convert mean convert_imageset compute_image_mean "
    "upgrade_net_proto_text upgrade_net_proto_binary upgrade_solver_proto_text extract_features "
    "classify parse_log plot_log draw_net export import simulate plan doctor status jobs token "
    "cert config completion manual master worker";

constexpr Option kProcessOptions[] = {
    {.name = "program",
     .type = text("PROGRAM", kProgramWords),
     .programs = {Program::kConfig},
     .sentence =
         "Whose options: run, launch, train, test, time, net, convert, mean, simulate, plan, "
         "master, worker or one of Caffe's tools, and flags of it",
     .place = OptionPlace::kArgument},
    {.name = "template",
     .type = on_off(),
     .programs = {Program::kConfig},
     .group = kOtherGroup,
     .sentence = "Print a configuration file with every option"},
    {.name = "shell",
     .type = one_of("bash zsh"),
     .programs = {Program::kCompletion},
     .sentence = "bash or zsh",
     .required = true,
     .place = OptionPlace::kArgument},
    {.name = "page",
     .type = one_of(kProgramWords),
     .otherwise = "speedo itself",
     .programs = {Program::kManual},
     .sentence = "The program's name: run, train, master, ...",
     .place = OptionPlace::kArgument},
    {.name = "folder",
     .type = text("FOLDER"),
     .programs = {Program::kManual},
     .group = kOtherGroup,
     .sentence = "Write all pages into this folder instead"},

    {.name = "threads",
     .type = threads(),
     .otherwise = "as many as the processors that may be used",
     .programs = kSharing,
     .group = kComputingGroup,
     .sentence = "Threads that compute, divided among the workers, and as many that decode data"},
    {.name = "threads",
     .type = threads(),
     .otherwise = "as many as the processors that may be used",
     .programs = kUndivided,
     .group = kComputingGroup,
     .sentence = "Threads that compute, and as many that decode data"},
    {.name = "cpu-isa",
     .type = one_of("portable avx2 avx512"),
     .otherwise = "the best that the processor has",
     .programs = kComputing,
     .group = kComputingGroup,
     .sentence = "Use no kernels above these: portable (on x86-64 without FMA: last bits are "
                 "others), avx2 or avx512"},
    {.name = "precision",
     .type = one_of("f32 tf32 bf16 fp16"),
     .value = "f32",
     .programs = kComputing,
     .group = kComputingGroup,
     .sentence = "What products multiply in: f32, bf16, or on GPUs alone tf32 or fp16 (no workers; "
                 "losses are scaled); weights and sums stay float32. With bf16 GPUs store so, too, "
                 "what passes between convolutions"},
    {.name = "gpu",
     .type = whole(0, kGpuMax),
     .otherwise = "in train, time and run as the solver's solver_mode says, else compute on the "
                  "CPU",
     .programs = kOnDevices,
     .group = kComputingGroup,
     .sentence = "Compute on the GPU of this number, which speedo device_query lists"},
    {.name = "gpus",
     .type = text("N,...|all"),
     .otherwise = "as --gpu and --device say",
     .programs = {Program::kRun},
     .group = kComputingGroup,
     .sentence = "Compute on these GPUs: workers take them in turn, several share one if there are "
                 "fewer, as all do with --gpu; without --workers there is one for each"},
    {.name = "cuda-graphs",
     .type = one_of("on off"),
     .value = "on",
     .programs = kOnDevices,
     .group = kComputingGroup,
     .sentence = "On a GPU, record a training step that nobody looks at and replay it at once, "
                 "where it can be; off: queue each of its operations"},
    {.name = "on-bad-record",
     .type = one_of("skip abort"),
     .value = "abort",
     .programs = kComputing | Programs{Program::kConvert},
     .group = kComputingGroup,
     .sentence = "A record of the data that cannot be read: skip takes the next in its place, "
                 "counts and reports it, abort ends with its error"},
    {.name = "data-cache",
     .type = text("FOLDER"),
     .otherwise = "$XDG_CACHE_HOME/speedo, else ~/.cache/speedo",
     .programs = kReadsFiles,
     .group = kOtherGroup,
     .sentence = "Keep copies of files at http://, https://, s3:// and hdfs:// URIs there, for all "
                 "processes of this user"},
    {.name = "data-cache-limit",
     .type = bytes(),
     .otherwise = "none",
     .programs = kReadsFiles,
     .group = kOtherGroup,
     .sentence = "What these copies may take together, as 20GB: those that no process uses leave "
                 "for new ones, the one first that was asked for longest ago"},
    {.name = "data-ca",
     .type = file(),
     .otherwise = "CURL_CA_BUNDLE or SSL_CERT_FILE, else the system's",
     .programs = kReadsFiles,
     .group = kOtherGroup,
     .sentence = "Certificates (PEM) of the authorities that vouch for https:// and s3:// servers"},
    {.name = "parser-process",
     .type = one_of("auto on off"),
     .value = "auto",
     .programs = kReadsFiles,
     .group = kOtherGroup,
     .sentence = "Decode PNG, JPEG, WebP and TIFF and read HDF5 in processes that can do nothing "
                 "else: on, off, or auto: in this one, with a warning, where none can be started"},
    {.name = "parser-memory",
     .type = whole(static_cast<std::int64_t>(kParserMiBMin),
                   static_cast<std::int64_t>(kParserMiBMax)),
     .unit = "MiB",
     .value = "2048",
     .programs = kReadsFiles,
     .group = kOtherGroup,
     .sentence = "MiB of memory that each of these processes may take; an image, with its file, "
                 "may have half"},
    {.name = "force",
     .type = on_off(),
     .programs = kTrainers | Programs{Program::kWorker},
     .group = kComputingGroup,
     .sentence = "Train even if memory is predicted not to suffice"},
    {.name = "pin",
     .type = one_of("on off auto"),
     .value = "off",
     .programs = {Program::kRun},
     .group = kComputingGroup,
     .sentence = "Give each worker processors of its own: on, off, or auto: if there are enough"},
    {.name = "compute-nice",
     .type = whole(0, kComputeNiceMax),
     .value = "5",
     .programs = {Program::kRun},
     .group = kComputingGroup,
     .sentence = "Lower the priority of the workers' compute threads by so much, so that master "
                 "and store are not kept waiting; 0: not"},
    {.name = "compute-nice",
     .type = whole(0, kComputeNiceMax),
     .value = "0",
     .programs = {Program::kWorker, Program::kLaunch},
     .group = kComputingGroup,
     .sentence = "Lower the priority of the compute threads by so much, so that the exchange is "
                 "not kept waiting"},
    {.name = "no-shared-memory",
     .type = on_off(),
     .programs = kClusters | Programs{Program::kWorker},
     .group = kComputingGroup,
     .sentence = "Exchange through Redis even between processes of one machine"},
    {.name = "emulate-compute",
     .type = text("MS[:SPREAD]"),
     .otherwise = "compute",
     .programs = Programs{Program::kRun} | Programs{Program::kWorker},
     .group = kComputingGroup,
     .sentence = "For measuring: workers sleep so many milliseconds a step, give or take SPREAD "
                 "percent, and send numbers that mean nothing, of the net's size; never beside "
                 "workers that compute"},
    {.name = "device",
     .type = text("WORD", "cpu gpu"),
     .value = "cpu",
     .programs = {Program::kMaster},
     .group = kComputingGroup,
     .sentence = "What this master tests on: cpu, gpu:N, the GPU of that number, or gpu, the "
                 "first; each speedo-worker has its own"},
    {.name = "device",
     .type = text("WORD", "cpu gpu"),
     .value = "cpu",
     .programs = {Program::kRun, Program::kLaunch, Program::kWorker},
     .group = kComputingGroup,
     .sentence = "What workers compute on: cpu, gpu:N, the GPU of that number, or gpu: those of "
                 "speedo run take the machine's GPUs in turn, others take the first"},
    {.name = "device",
     .type = text("WORD", "cpu gpu"),
     .otherwise = "as --gpu says",
     .programs = {Program::kTrain, Program::kTest, Program::kTime},
     .group = kComputingGroup,
     .sentence = "What to compute on: cpu, whatever the solver's solver_mode says, gpu:N, the GPU "
                 "of that number, or gpu, the first"},
    {.name = "cpu-db-actor",
     .type = on_off(),
     .programs = kClusters,
     .group = kComputingGroup,
     .sentence = "Merge on the CPU: SpeeDO's flag, always so here"},

    {.name = "job",
     .old_names = "key-name",
     .type = text("NAME"),
     .otherwise = "the net's name",
     .programs = kClusters,
     .group = kOtherGroup,
     .sentence = "Name of the job: its key space in Redis, and in its checkpoints"},
    {.name = "sigint-effect",
     .type = one_of("stop snapshot none"),
     .otherwise = "snapshot and stop",
     .programs = kTrainers,
     .group = kOtherGroup,
     .sentence = "What SIGINT does: stop (with a snapshot unless the solver says "
                 "snapshot_after_train: false), snapshot (and go on) or none"},
    {.name = "sighup-effect",
     .type = one_of("stop snapshot none"),
     .value = "snapshot",
     .programs = kTrainers,
     .group = kOtherGroup,
     .sentence = "What SIGHUP does: stop, snapshot or none"},
    {.name = "sleep-after-finish",
     .type = optional_text("[=SECONDS]", "until-signal"),
     .unit = "seconds",
     .programs = {Program::kMaster},
     .group = kOtherGroup,
     .sentence = "Stay after the end for so many seconds, or until a signal comes"},
    {.name = "tensorboard",
     .type = text("FOLDER"),
     .programs = kTrainers,
     .group = kOtherGroup,
     .sentence = "Write curves of losses and scores there, which TensorBoard shows: each of the "
                 "first 10000 points, then ten a second"},
    {.name = "curve",
     .type = text("FILE.csv"),
     .programs = kTrainers,
     .group = kOtherGroup,
     .sentence = "Write the training's curve there as a table: loss, accuracy, rate, workers and "
                 "staleness; a training that is resumed goes on in it"},
    {.name = "metrics-addr",
     .type = text("HOST:PORT"),
     .programs = kClusters,
     .group = kOtherGroup,
     .sentence = "Serve a page that shows the job there, /metrics for Prometheus, /healthz and "
                 "/readyz; PORT alone: for this machine; port 0: any free one"},
    {.name = "trace-file",
     .old_names = "trace",
     .type = text("FILE"),
     .programs = kTrainers | Programs{Program::kWorker},
     .group = kOtherGroup,
     .sentence = "Write when what was computed, exchanged and waited for, which chrome://tracing "
                 "and ui.perfetto.dev show"},
    {.name = "dry-run",
     .type = on_off(),
     .programs = kLasting,
     .group = kOtherGroup,
     .sentence = "Only check what this program needs, as speedo doctor does"},
    {.name = "json",
     .type = on_off(),
     .programs = kPrinting,
     .group = kOtherGroup,
     .sentence = "Print the result as one JSON object on standard output"},
    {.name = "json",
     .type = on_off(),
     .programs = {Program::kNet, Program::kConfig, Program::kDoctor, Program::kStatus,
                  Program::kJobs, Program::kClassify, Program::kDeviceQuery},
     .group = kOtherGroup,
     .sentence = "Print one JSON object instead of a table"},
    {.name = "debug",
     .type = on_off(),
     .programs =
         kTrainers | Programs{Program::kWorker, Program::kTest, Program::kTime, Program::kPlan},
     .group = kOtherGroup,
     .sentence = "Log more"},
    {.name = "log-format",
     .type = one_of("glog-0.6 glog"),
     .value = "glog-0.6",
     .programs = kTrainers | Programs{Program::kWorker, Program::kTest, Program::kTime},
     .group = kOtherGroup,
     .sentence = "Date of a log line: glog-0.6, with the year, or glog, without it, as Caffe's "
                 "parse_log.py and extract_seconds.py read"},
    {.name = "config",
     .type = file(),
     .otherwise = "SPEEDO_CONFIG, else your own speedo.toml here, if there is one",
     .programs = kAllPrograms,
     .group = kOtherGroup,
     .sentence = "File with options (conf/speedo.toml)"},
    {.name = "no-config",
     .type = on_off(),
     .programs = kAllPrograms,
     .group = kOtherGroup,
     .sentence = "Take options from the command line alone: neither from a file nor from SPEEDO_ "
                 "variables"},
};

}  // namespace

std::span<const Option> process_options() { return kProcessOptions; }

}  // namespace speedo
