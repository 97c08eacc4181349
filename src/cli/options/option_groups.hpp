#pragma once

#include <span>

#include "cli/options/option.hpp"

// The table of options, in parts.
namespace speedo {

std::span<const Option> job_options();       // what is trained: solver, net, start, checkpoints
std::span<const Option> schedule_options();  // when and how results are merged
std::span<const Option> cluster_options();   // workers, network, store, time-outs
std::span<const Option> net_options();       // of the commands for one net
std::span<const Option> data_options();      // of the commands for data
std::span<const Option> tool_options();      // of the commands named as Caffe's tools
std::span<const Option> format_options();    // of export and import
std::span<const Option> simulate_options();  // of `speedo simulate`
std::span<const Option> process_options();   // of every program: computing, logging, configuration

// Programs that share options.
inline constexpr Programs kClusters{Program::kMaster, Program::kRun, Program::kLaunch};
inline constexpr Programs kClustersAndStages{Program::kMaster, Program::kRun, Program::kLaunch,
                                             Program::kStage};
inline constexpr Programs kTrainers{Program::kMaster, Program::kRun, Program::kTrain,
                                    Program::kLaunch};
inline constexpr Programs kLasting{Program::kMaster, Program::kRun, Program::kWorker,
                                   Program::kLaunch};

inline constexpr Programs kTools{Program::kConvertImageset,   Program::kComputeImageMean,
                                 Program::kUpgradeNetText,    Program::kUpgradeNetBinary,
                                 Program::kUpgradeSolverText, Program::kExtractFeatures,
                                 Program::kParseLog,          Program::kPlotLog,
                                 Program::kDrawNet,           Program::kClassify};

// Groups of the help that several parts have.
inline constexpr std::string_view kSolverGroup = "Solver (override the prototxt)";
inline constexpr std::string_view kComputingGroup = "Computing";
inline constexpr std::string_view kOtherGroup = "Other";

}  // namespace speedo
