#pragma once

#include <string>

#include "sim/proof/proof_campaign.hpp"

namespace speedo {

// Each kind of fault with how often it was drawn, struck and had an effect, one a line.
std::string to_table(const sim::FaultTable& faults);
// Counts, kinds of fault and violations as one JSON object in one line. `replay`: how to see a
// violation again, but for its seed.
std::string to_json(const sim::CampaignResult& result, const std::string& replay);
// Of the command: 0, or 1 where a seed found a violation or a kind of fault did nothing.
int exit_code_of(const sim::CampaignResult& result);

}  // namespace speedo
