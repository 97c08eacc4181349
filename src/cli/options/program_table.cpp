#include "cli/options/program_table.hpp"

#include <algorithm>
#include <iterator>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

constexpr std::string_view kMasterNotes =
    "Flags may be written with one or two dashes, as --max-iter, --max_iter or --maxIter.\n"
    "SIGINT or SIGTERM: end with a snapshot; the second one ends at once. SIGHUP: write a\n"
    "snapshot and go on.\n"
    "Not built yet, and said so: --hdfs, --run-id and others.\n\n"
    "Examples:\n"
    "  speedo-master --solver examples/mnist/lenet_solver.prototxt --workers 2 --sync\n"
    "  speedo-master --solver S.prototxt --workers 2:8 --strategy easgd --train 10 --resume=auto\n"
    "  speedo-master --solver S.prototxt --redis 10.0.0.1 --redis-password-file redis.password\n"
    "  speedo-master --solver S.prototxt --workers 4 --maxIter 800 \\\n"
    "                --hybrid =maxIter 100 =sync == =maxIter 300 =drop 3";

constexpr std::string_view kWorkerNotes =
    "The worker waits for its master, and connects again when it was away. The job comes from the\n"
    "master; only data and mean file must lie here, at the paths that the net names.\n"
    "The master names the Redis server, but not its password: a worker brings its own.\n"
    "SIGINT or SIGTERM: leave; the second one ends at once. SIGHUP, as of a closed terminal,\n"
    "does nothing.\n\n"
    "Examples:\n"
    "  speedo-worker --master speedo://10.0.0.1:56126\n"
    "  speedo-worker --master speedo://10.0.0.1:56126 --redis-password-file redis.password";

constexpr std::string_view kRunNotes =
    "Flags may be written with one or two dashes, as --max-iter, --max_iter or --maxIter.\n"
    "Ctrl-C or SIGTERM: end with a snapshot; twice: end at once. SIGHUP, as of a closed terminal:\n"
    "write a snapshot and go on.\n\n"
    "Examples:\n"
    "  speedo run --solver examples/mnist/lenet_solver.prototxt --workers 2 --sync --json\n"
    "  speedo run --solver S.prototxt --workers 4 --strategy easgd --train 10 --max-restarts 3\n"
    "  speedo run --solver S.prototxt --workers 4 --hybrid =maxIter 100 =sync == =drop 3";

constexpr std::string_view kTrainNotes =
    "SIGINT or SIGTERM: end with a snapshot; the second one ends at once. SIGHUP: write a\n"
    "snapshot and go on.\n\n"
    "Example:\n"
    "  speedo train -solver examples/mnist/lenet_solver.prototxt";

constexpr std::string_view kTestNotes =
    "Example:\n"
    "  speedo test -model examples/mnist/lenet_train_test.prototxt \\\n"
    "      -weights examples/mnist/lenet_iter_10000.caffemodel -iterations 100";

constexpr std::string_view kTimeNotes =
    "Shares are of the matrix product's rate, measured at the start of the run; operations are\n"
    "counted as the layer's definition has them, so that a faster algorithm can exceed it.\n"
    "Input blobs hold noise, those read as labels 0.\n\n"
    "Examples:\n"
    "  speedo time -model examples/mnist/lenet_train_test.prototxt -iterations 20\n"
    "  speedo time --solver examples/imagenet/resnet50_solver.prototxt --iterations 5";

constexpr std::string_view kNetNotes =
    "Shapes follow from the data, so the sources that the net names must be there.\n"
    "Memory is that of a process with this net alone, in training with one history, as SGD's\n"
    "(Adam and AdaDelta have two, each as large as the weights); it depends on the threads.\n"
    "Snapshots come on top of it.\n\n"
    "Example:\n"
    "  speedo net --model examples/mnist/lenet.prototxt --phase TEST --json";

constexpr std::string_view kConvertNotes =
    "idx takes IMAGES LABELS OUTPUT, cifar takes FILE... OUTPUT, csv and db take FILE OUTPUT.\n"
    "idx and csv files may be compressed with gzip.\n\n"
    "Examples:\n"
    "  speedo convert idx train-images-idx3-ubyte train-labels-idx1-ubyte mnist_train_lmdb\n"
    "  speedo convert csv digits.csv.gz train_lmdb --shape 1,8,8 --count 1500\n"
    "  speedo convert db mnist_train_lmdb shards/mnist_lmdb --parts 2,1.5,1\n"
    "  speedo convert db mnist_train_lmdb mnist_train.datumfile --backend datumfile";

constexpr std::string_view kMeanNotes =
    "Example:\n"
    "  speedo mean examples/cifar10/cifar10_train_lmdb examples/cifar10/mean.binaryproto";

constexpr std::string_view kConvertImagesetNotes =
    "The label is behind a line's last blank. Keys are the place in the list, of eight digits,\n"
    "and the name. Flags are Caffe's, also as --nogray; images are read and decoded in parallel.\n"
    "PNG, JPEG, WebP, TIFF, BMP and PNM can be read.\n\n"
    "Example:\n"
    "  speedo convert_imageset --resize_height=256 --resize_width=256 --shuffle images/ \\\n"
    "      train.txt train_lmdb";

constexpr std::string_view kComputeImageMeanNotes =
    "Prints the mean of each channel. Without an output nothing is written.\n\n"
    "Example:\n"
    "  speedo compute_image_mean -backend lmdb train_lmdb mean.binaryproto";

constexpr std::string_view kUpgradeNetTextNotes =
    "Example:\n"
    "  speedo upgrade_net_proto_text old_train_val.prototxt train_val.prototxt";

constexpr std::string_view kUpgradeNetBinaryNotes =
    "Example:\n"
    "  speedo upgrade_net_proto_binary old.caffemodel new.caffemodel";

constexpr std::string_view kUpgradeSolverTextNotes =
    "Example:\n"
    "  speedo upgrade_solver_proto_text old_solver.prototxt solver.prototxt";

constexpr std::string_view kExtractFeaturesNotes =
    "Each image's values become a Datum of floats, keyed by the image's number in ten digits.\n"
    "Names of blobs, and of databases, are separated by commas. Workers compute ranges of\n"
    "batches, and give the bytes that one process with as many --threads would. What a worker\n"
    "that died had to do is done again. With machines of several kinds give --cpu-isa.\n\n"
    "Examples:\n"
    "  speedo extract_features net.caffemodel net.prototxt fc7,prob fc7_lmdb,prob_lmdb 10 lmdb\n"
    "  speedo extract_features net.caffemodel net.prototxt fc7 fc7_lmdb 10000 lmdb --workers 3";

constexpr std::string_view kClassifyNotes =
    "Takes what Caffe's classification takes: a deploy net with one Input and one output. Images\n"
    "get the channels that the net wants, blue first, and are stretched to its size; the mean of\n"
    "each channel is subtracted: that of a mean.binaryproto, numbers with commas, or none.\n\n"
    "Examples:\n"
    "  speedo classify deploy.prototxt net.caffemodel mean.binaryproto words.txt cat.jpg\n"
    "  speedo classify deploy.prototxt net.caffemodel 104,117,123 words.txt *.jpg --top 3 --json";

constexpr std::string_view kParseLogNotes =
    "Columns are NumIters, Seconds, LearningRate and the net's outputs, as parse_log.py has them.\n"
    "Dates may have years (glog 0.6) or not.\n\n"
    "Example:\n"
    "  speedo parse_log train.log tables";

constexpr std::string_view kPlotLogNotes =
    "Charts, as Caffe's plot_training_log.py numbers them:\n"
    "  0  test accuracy by iterations        1  test accuracy by seconds\n"
    "  2  test loss by iterations            3  test loss by seconds\n"
    "  4  learning rate by iterations        5  learning rate by seconds\n"
    "  6  training loss by iterations        7  training loss by seconds\n"
    "A curve for each log, of Caffe or of speedo. PNG needs rsvg-convert (librsvg2-bin).\n\n"
    "Examples:\n"
    "  speedo plot_log 6 loss.svg train.log\n"
    "  speedo plot_log 0 accuracy.png sync.log async.log";

constexpr std::string_view kDrawNetNotes =
    "Examples:\n"
    "  speedo draw_net examples/mnist/lenet_train_test.prototxt lenet.svg --phase TRAIN\n"
    "  speedo draw_net net.prototxt net.dot --rankdir TB";

constexpr std::string_view kExportNotes =
    "deploy: the TEST net without data, losses and labels as a prototxt, and beside it, as\n"
    ".caffemodel, its weights. onnx: the same net with weights, opset 17. safetensors, h5: the\n"
    "weights by name, those for training alone too, unless --outputs says which are wanted; "
    "--model\n"
    "is not needed, but names them by their layers' types. The shape of the input is what the "
    "TEST\n"
    "data layer reads, unless --shape and --batch say otherwise. Means and scales of data layers\n"
    "are no part of what is written.\n\n"
    "Examples:\n"
    "  speedo export --format onnx --model lenet_train_test.prototxt \\\n"
    "      --weights lenet_iter_10000.caffemodel --shape 1,1,28,28 --output lenet.onnx\n"
    "  speedo export --format deploy --model train_val.prototxt --weights net.caffemodel \\\n"
    "      --batch 10 --output deploy.prototxt\n"
    "  speedo export --format safetensors --weights net.caffemodel --output net.safetensors";

constexpr std::string_view kImportNotes =
    "Tensors are taken by name: LAYER.weight, LAYER.bias and the like, as export writes them, or\n"
    "LAYER.0, LAYER.1; as F32, F16, BF16 or F64. Each parameter of the net must be there in its\n"
    "shape, with one value if layers share it. Those of a layer for training alone may be there\n"
    "if all that it has are, in its shapes, which are checked where the net's data are there;\n"
    "nothing else may.\n\n"
    "Example:\n"
    "  speedo import --model deploy.prototxt --weights net.safetensors --output net.caffemodel";

constexpr std::string_view kProofNotes =
    "Ends with 1 if something that must hold did not, or if a kind of fault that was drawn often\n"
    "never had an effect.\n\n"
    "With --cluster FILE or --calibrate it is a planner instead: speedo simulate --cluster FILE\n"
    "--help. So it is with [plan] cluster of a file or SPEEDO_CLUSTER, unless a flag is given "
    "that\n"
    "the proof alone has (--seeds).\n\n"
    "Example:\n"
    "  speedo simulate --strategy all --workers 2:64 --seeds 1..2000";

constexpr std::string_view kPlanNotes =
    "Schedules are written NAME or NAME:N. N is the lead of partial-sync, the staleness of ssp,\n"
    "the window of weedout, the groups of grouping; of all others the mini-batches between\n"
    "exchanges. Sampled durations come from --seed: the same seed gives the same plan.\n"
    "Speed-ups are relative to one worker of the first machine without a cluster.\n"
    "Layers wait for their own weights, gradients go out while others are computed, rounds are\n"
    "merged ahead of order, as in training; who runs on a machine shares its cores.\n\n"
    "Examples:\n"
    "  speedo simulate --cluster examples/simulate/cluster.toml --workers 1:6 --svg plan.svg\n"
    "  speedo simulate --cluster cluster.toml --strategy sync,easgd,easgd:10 \\\n"
    "                  --train-net examples/digits/digits_solver.prototxt\n"
    "  speedo simulate --calibrate --solver examples/mnist/lenet_solver.prototxt \\\n"
    "                  --write here.toml";

constexpr std::string_view kDoctorNotes =
    "Ends with 1 if there is a problem. Redis' password: --redis-password-file, or\n"
    "SPEEDO_REDIS_PASSWORD in the environment. Of a job's memory all workers are counted, and\n"
    "without --redis, --master and --bind master and store, too, as speedo run does. speedo run,\n"
    "speedo-master and speedo-worker look at what concerns them with --dry-run.\n\n"
    "Examples:\n"
    "  speedo doctor --solver examples/mnist/lenet_solver.prototxt --workers 2\n"
    "  speedo doctor --redis 10.0.0.1 --redis-password-file redis.password --bind 10.0.0.2";

constexpr std::string_view kLaunchNotes =
    "Master and Redis run here, workers on the hosts: speedo-worker must be in the PATH there, "
    "the\n"
    "data where the net names them, and ssh must need no password. A host's workers end when the\n"
    "connection does. --data-map names a file of each host, looked up from its folder there.\n"
    "--dry-run tries each host, and what is here. Ctrl-C: end with a snapshot; twice: at once.\n\n"
    "Example of a hosts file:\n"
    "  node1 workers=2\n"
    "  ann@node2:2222 threads=8 folder=/data/mnist program=/opt/speedo/bin/speedo-worker\n\n"
    "Examples:\n"
    "  speedo launch --hosts hosts.txt --solver S.prototxt --sync --insecure\n"
    "  speedo launch --hosts hosts.txt --solver S.prototxt --dry-run\n"
    "  speedo launch --hosts hosts.txt --require all --ssh-options '-i key' --host 10.0.0.1 \\\n"
    "                --insecure --solver S.prototxt --max-restarts 3";

constexpr std::string_view kDeviceQueryNotes =
    "Says why if there is none that can be used: no driver, one that is too old, no GPU.\n\n"
    "Example:\n"
    "  speedo device_query";

constexpr std::string_view kStatusNotes =
    "SEEN is the time since a worker was heard of, STALE how many merges lay between the reading\n"
    "of its weights and the merge of its last contribution, DROPPED its contributions that were\n"
    "not merged. Wide terminals show where its time goes: data, forward, backward, exchange, "
    "wait.\n"
    "In a browser: --metrics-addr of the master.\n\n"
    "Examples:\n"
    "  speedo status --master speedo://10.0.0.1:56126 --watch\n"
    "  speedo status --master 10.0.0.1:56126 --json";

constexpr std::string_view kJobsNotes =
    "A job is running while a master holds it, over when its last master said so, else left: a\n"
    "master with the same --job goes on with it. What a job leaves stays until it is removed, or\n"
    "a training begins anew under its name. A removed job can be begun anew at once; of its\n"
    "master a number stays, by which one that is frozen or cut off finds out that it is over.\n\n"
    "Examples:\n"
    "  speedo jobs --redis 10.0.0.1 --redis-password-file redis.password\n"
    "  speedo jobs --redis 10.0.0.1,10.0.0.2 --remove lenet";

constexpr std::string_view kConfigNotes =
    "Options come from the command line, else from SPEEDO_ variables, else from a file, else from\n"
    "their defaults. Behind a program's name may stand its flags, and --json.\n\n"
    "Examples:\n"
    "  speedo config run --max-iter 100\n"
    "  SPEEDO_THREADS=2 speedo config master --json\n"
    "  speedo config --template > speedo.toml";

constexpr std::string_view kTokenNotes =
    "Whoever has the file may join the cluster, watch it, or pass for its master: copy it by scp\n"
    "or as a secret of the cluster's manager, never on a command line. To change it, put a new\n"
    "token above the old one in the master's file, give the new one to all workers, take the old\n"
    "one away.\n"
    "\n"
    "Example:\n"
    "  speedo token create job.token\n"
    "  speedo-master --bind 10.0.0.1 --token-file job.token --solver S.prototxt";

constexpr std::string_view kCertNotes =
    "The folder holds the authority: ca.pem, which every machine of the cluster has (--tls-ca),\n"
    "and ca.key, which no other needs. NAME.pem and NAME.key are a machine's --tls-cert and\n"
    "--tls-key. issued lists what was issued: NAME, serial number and expiry. revoke writes\n"
    "ca.pem anew, with all certificates of NAME in that list that have not expired: from then on\n"
    "who has that ca.pem refuses them. To issue NAME anew, move NAME.pem and NAME.key away, and\n"
    "revoke it before that if others may know its key.\n"
    "\n"
    "Examples:\n"
    "  speedo cert init authority\n"
    "  speedo cert issue authority head --role master --names head.example.org,10.0.0.1\n"
    "  speedo cert issue authority node1 --role worker\n"
    "  speedo cert issue authority redis --role redis --names redis.example.org,10.0.0.5\n"
    "  speedo cert revoke authority node1";

constexpr std::string_view kCompletionNotes =
    "Examples:\n"
    "  source <(speedo completion bash)\n"
    "  speedo completion zsh > ~/.zfunc/_speedo";

constexpr std::string_view kManualNotes =
    "Examples:\n"
    "  speedo manual run > speedo-run.1 && man ./speedo-run.1\n"
    "  speedo manual --folder ~/.local/share/man/man1";

constexpr ProgramEntry kPrograms[] = {
    {Program::kRun, "speedo run", "run",
     "Train on a cluster of this machine: a private Redis, one master, N workers", kRunNotes},
    {Program::kLaunch, "speedo launch", "launch",
     "Train on a cluster of machines that ssh reaches: master and Redis here, workers there",
     kLaunchNotes},
    {Program::kTrain, "speedo train", "train", "Train or fine-tune a net in one process",
     kTrainNotes},
    {Program::kTest, "speedo test", "test", "Score a model on the data of its TEST phase",
     kTestNotes},
    {Program::kTime, "speedo time", "time", "Measure a net layer by layer", kTimeNotes},
    {Program::kNet, "speedo net", "net", "Show the shapes, parameters and memory of a net",
     kNetNotes},
    {Program::kConvert, "speedo convert", "convert",
     "Make a database of MNIST (idx), CIFAR or CSV files, or of another database", kConvertNotes},
    {Program::kMean, "speedo mean", "mean", "Compute the mean image of a data set", kMeanNotes},
    {Program::kConvertImageset, "speedo convert_imageset", "convert_imageset",
     "Make a database of a list of images, as Caffe's tool does", kConvertImagesetNotes},
    {Program::kComputeImageMean, "speedo compute_image_mean", "compute_image_mean",
     "Compute the mean image of a data set, as Caffe's tool does", kComputeImageMeanNotes},
    {Program::kUpgradeNetText, "speedo upgrade_net_proto_text", "upgrade_net_proto_text",
     "Bring a net prototxt to the newest form", kUpgradeNetTextNotes},
    {Program::kUpgradeNetBinary, "speedo upgrade_net_proto_binary", "upgrade_net_proto_binary",
     "Bring a .caffemodel to the newest form", kUpgradeNetBinaryNotes},
    {Program::kUpgradeSolverText, "speedo upgrade_solver_proto_text", "upgrade_solver_proto_text",
     "Bring a solver prototxt to the newest form", kUpgradeSolverTextNotes},
    {Program::kExtractFeatures, "speedo extract_features", "extract_features",
     "Write what blobs of a net hold for each image into databases", kExtractFeaturesNotes},
    {Program::kClassify, "speedo classify", "classify", "Name the best classes of images",
     kClassifyNotes},
    {Program::kParseLog, "speedo parse_log", "parse_log",
     "Make tables of the displays and tests in a log", kParseLogNotes},
    {Program::kPlotLog, "speedo plot_log", "plot_log", "Draw curves of the trainings in logs",
     kPlotLogNotes},
    {Program::kDrawNet, "speedo draw_net", "draw_net", "Draw a net as a graph", kDrawNetNotes},
    {Program::kExport, "speedo export", "export",
     "Write a trained net for other programs: ONNX, safetensors, deploy.prototxt, HDF5",
     kExportNotes},
    {Program::kImport, "speedo import", "import",
     "Make a .caffemodel of the weights in a safetensors file", kImportNotes},
    {Program::kProof, "speedo simulate", "simulate",
     "Simulate clusters: prove the schedules under faults, or plan a cluster", kProofNotes},
    {Program::kPlan, "speedo simulate", "plan", "What each schedule would do on a cluster",
     kPlanNotes},
    {Program::kDoctor, "speedo doctor", "doctor",
     "Find what is wrong with machine, network, store and job before hours are lost",
     kDoctorNotes},
    {Program::kDeviceQuery, "speedo device_query", "device_query",
     "List the GPUs that nets can be computed on", kDeviceQueryNotes},
    {Program::kStatus, "speedo status", "status",
     "Show how a job stands: its master's progress and all its workers", kStatusNotes},
    {Program::kJobs, "speedo jobs", "jobs", "List what jobs have in Redis, or remove one of them",
     kJobsNotes},
    {Program::kToken, "speedo token", "token",
     "Make the secret that a master and its workers share", kTokenNotes},
    {Program::kCert, "speedo cert", "cert",
     "Make a certificate authority for a cluster, and certificates of it", kCertNotes},
    {Program::kConfig, "speedo config", "config",
     "Show a program's options and where each value comes from", kConfigNotes},
    {Program::kCompletion, "speedo completion", "completion",
     "Print what completes SpeeDO's command lines in a shell", kCompletionNotes},
    {Program::kManual, "speedo manual", "manual", "Print a page of the manual, or write all",
     kManualNotes},
    {Program::kMaster, "speedo-master", "master",
     "Master of a SpeeDO cluster: schedules workers and merges what they learn", kMasterNotes},
    {Program::kWorker, "speedo-worker", "worker",
     "Worker of a SpeeDO cluster: trains what its master says", kWorkerNotes},
};

}  // namespace

const std::vector<ProgramEntry>& program_table() {
  static const std::vector<ProgramEntry> all(std::begin(kPrograms), std::end(kPrograms));
  return all;
}

const ProgramEntry& entry_of(Program program) {
  const std::vector<ProgramEntry>& all = program_table();
  const auto place = std::find_if(all.begin(), all.end(), [&](const ProgramEntry& entry) {
    return entry.program == program;
  });
  SPEEDO_ASSERT(place != all.end());
  return *place;
}

}  // namespace speedo
