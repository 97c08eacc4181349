#include "main/training_state.hpp"

#include "actors/node.hpp"
#include "actors/status_client.hpp"
#include "cli/signals.hpp"

namespace speedo {

std::function<std::optional<TrainingState>(const MasterPlace& master)> ask_training_state() {
  return [](const MasterPlace& master) -> std::optional<TrainingState> {
    const auto address = parse_address(master.address);
    if (!address) return std::nullopt;
    auto client = StatusClient::create(*address, {.token = master.token_file, .certificates = {}},
                                       [] { return stop_requested(); });
    if (!client) return std::nullopt;
    const auto status = client->ask();
    if (!status) return std::nullopt;
    if (status->over) return TrainingState::kOver;
    const bool has_begun = status->progress.training || status->progress.merges > 0;
    return has_begun ? TrainingState::kGoesOn : TrainingState::kAwaited;
  };
}

}  // namespace speedo
