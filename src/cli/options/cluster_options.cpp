// What a cluster is made of: master, workers, network, store; and how long each waits for another.

#include "cli/options/option_groups.hpp"

namespace speedo {

namespace {

constexpr std::string_view kClusterGroup = "Cluster";
constexpr std::string_view kNetworkGroup = "Network and store";
constexpr std::string_view kTimeOutsGroup = "Time-outs";

// Each worker has threads and a net of its own.
constexpr std::int64_t kWorkersPerProcessMax = 256;
constexpr std::int64_t kPortMax = 65535;
constexpr std::int64_t kRestartsMax = 1000000;

constexpr Option kClusterOptions[] = {
    {.name = "master",
     .type = text("ADDRESS"),
     .programs = {Program::kWorker},
     .group = kClusterGroup,
     .sentence = "HOST:PORT, speedo://HOST:PORT or akka.tcp://SpeeDO@HOST:PORT/user/host",
     .required = true},
    {.name = "workers",
     .old_names = "worker",
     .type = whole(1, kWorkersPerProcessMax),
     .value = "1",
     .programs = {Program::kWorker},
     .group = kClusterGroup,
     .sentence = "Workers in this process"},
    {.name = "max-restarts",
     .type = whole(0, kRestartsMax),
     .value = "0",
     .programs = {Program::kRun},
     .group = kClusterGroup,
     .sentence = "Start a worker process that dies again, each at most so many times"},
    {.name = "log-dir",
     .type = file(),
     .otherwise = "a temporary one",
     .programs = {Program::kRun},
     .group = kClusterGroup,
     .sentence = "Folder for the workers' logs"},

    {.name = "redis",
     .type = text("ADDRESS"),
     .otherwise = "127.0.0.1:6379, or a private one if none answers there",
     .programs = {Program::kMaster},
     .group = kNetworkGroup,
     .sentence = "HOST[:PORT], redis://[USER@]HOST[:PORT][/DB] or unix://[USER@]/PATH"},
    {.name = "redis",
     .type = text("ADDRESS"),
     .otherwise = "the one that the master names",
     .programs = {Program::kWorker},
     .group = kNetworkGroup,
     .sentence = "Redis server to use, written as the master's"},
    {.name = "redis-password-file",
     .type = file(),
     .programs = {Program::kMaster, Program::kWorker},
     .group = kNetworkGroup,
     .sentence = "File with Redis' password (chmod 600), its only line; instead of "
                 "SPEEDO_REDIS_PASSWORD in the environment. The user, if it is not the default "
                 "one: --redis redis://USER@HOST or SPEEDO_REDIS_USERNAME"},
    {.name = "bind",
     .type = text("ADDRESS"),
     .otherwise = "--host, else 127.0.0.1",
     .programs = {Program::kMaster},
     .group = kNetworkGroup,
     .sentence = "Address to listen on"},
    {.name = "port",
     .type = whole(0, kPortMax),
     .value = "0",
     .programs = {Program::kMaster},
     .group = kNetworkGroup,
     .sentence = "Port to listen on; 0: any free one"},
    {.name = "port",
     .type = whole(0, kPortMax),
     .value = "0",
     .programs = {Program::kWorker},
     .group = kNetworkGroup,
     .sentence = "SpeeDO's flag: a worker here opens no port"},
    {.name = "host",
     .type = text("ADDRESS"),
     .otherwise = "--bind; for 0.0.0.0 or :: that of the interface which others reach",
     .programs = {Program::kMaster},
     .group = kNetworkGroup,
     .sentence = "Address that workers are told"},
    {.name = "host",
     .type = text("NAME"),
     .otherwise = "this machine's",
     .programs = {Program::kWorker},
     .group = kNetworkGroup,
     .sentence = "Name of this host in the master's log"},
    {.name = "insecure",
     .type = on_off(),
     .programs = {Program::kMaster},
     .group = kNetworkGroup,
     .sentence = "Allow --bind to an address that others reach: the port does not authenticate "
                 "yet"},
    {.name = "address-file",
     .type = file(),
     .programs = {Program::kMaster},
     .group = kNetworkGroup,
     .sentence = "Write the master's address to this file once it listens"},

    {.name = "join-timeout",
     .old_names = "timeout",
     .type = seconds(0),
     .unit = "seconds",
     .value = "0",
     .programs = kClusters,
     .group = kTimeOutsGroup,
     .sentence = "Wait so long for the workers to join; 0: for ever"},
    {.name = "below-min-timeout",
     .type = seconds(0),
     .unit = "seconds",
     .value = "0",
     .programs = kClusters,
     .group = kTimeOutsGroup,
     .sentence = "End when training has paused so long for want of workers; 0: never"},
    {.name = "worker-timeout",
     .type = seconds(0),
     .unit = "seconds",
     .value = "10",
     .programs = kClusters,
     .group = kTimeOutsGroup,
     .sentence = "A worker that is silent for so long counts as dead; 0: never"},
    {.name = "stall-timeout",
     .type = seconds(0),
     .unit = "seconds",
     .otherwise = "10 times --worker-timeout",
     .programs = kClusters,
     .group = kTimeOutsGroup,
     .sentence = "So does one whose computation stands still for so long; 0: never"},
    // A worker whose job is over, and who cannot learn it, does not look for its master for ever.
    {.name = "connect-timeout",
     .type = seconds(0),
     .unit = "seconds",
     .value = "600",
     .programs = {Program::kWorker},
     .group = kTimeOutsGroup,
     .sentence = "Give up when no master was reached for so long; 0: never"},
    {.name = "store-timeout",
     .type = seconds(0),
     .unit = "seconds",
     .value = "600",
     .programs = kLasting,
     .group = kTimeOutsGroup,
     .sentence = "Wait so long for a Redis that is out of reach, then end; 0: end at once"},
    {.name = "grace-period",
     .type = seconds(1),
     .unit = "seconds",
     .value = "25",
     .programs = kLasting,
     .group = kTimeOutsGroup,
     .sentence = "After SIGINT or SIGTERM end within so long, whatever hangs; the snapshot comes "
                 "first"},
};

}  // namespace

std::span<const Option> cluster_options() { return kClusterOptions; }

}  // namespace speedo
