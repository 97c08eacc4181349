#include "main/job_begun.hpp"

#include "actors/node.hpp"
#include "actors/status_client.hpp"
#include "cli/signals.hpp"

namespace speedo {

std::function<std::optional<bool>(const MasterPlace& master)> ask_whether_begun() {
  return [](const MasterPlace& master) -> std::optional<bool> {
    const auto address = parse_address(master.address);
    if (!address) return std::nullopt;
    auto client = StatusClient::create(*address, {.token = master.token_file, .certificates = {}},
                                       [] { return stop_requested(); });
    if (!client) return std::nullopt;
    const auto status = client->ask();
    if (!status) return std::nullopt;
    return status->over || status->progress.training || status->progress.merges > 0;
  };
}

}  // namespace speedo
