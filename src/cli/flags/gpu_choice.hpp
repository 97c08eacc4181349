#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/gpu/gpu_devices.hpp>

#include "caffe.pb.h"
#include "cli/flags/compute_flags.hpp"

namespace speedo {

// What gpu_devices() gives.
using GpusHere = Result<std::vector<GpuDescription>>;

// As check_gpu_libraries(), and asked only of a GPU that could be used with them.
using CheckLibraries = Result<void> (*)();

// Whether the GPU of that number can be computed on, for a choice that nobody made by our own
// flags. Errors: as gpu_devices(), check_capability(), `libraries`; kNotFound if there is none of
// that number.
Result<void> check_usable(int index, const GpusHere& here,
                          CheckLibraries libraries = check_gpu_libraries);
// The numbers of all that can be.
std::vector<int> usable_gpus(const GpusHere& here, CheckLibraries libraries = check_gpu_libraries);

// The GPU that a solver prototxt asks for by solver_mode and device_id. Requires: it asks for one.
// Errors: as check_usable().
Result<int> gpu_of_solver(const caffe::SolverParameter& solver, const GpusHere& here,
                          CheckLibraries libraries = check_gpu_libraries);

// Caffe's solver_mode: GPU. Where no flag says what to compute on, sets that of the solver; where
// that cannot be used, the flags stay as they are, and a warning says why.
void follow_solver_mode(const caffe::SolverParameter& solver, const std::string& path,
                        ComputeFlags& flags);
// The same for the workers of one machine, which take its GPUs in turn.
void follow_solver_mode_in_turn(const caffe::SolverParameter& solver, const std::string& path,
                                ComputeFlags& flags);

// --gpus, if it counts: empty without it, and if --gpu or --device comes from a source that goes
// before its own. Error: kUsage, if one comes from the same.
Result<std::string> gpus_named(const OptionValues& values);

// What --gpus names, "all" or numbers with commas between them: the k-th worker of a machine
// computes on the k-th of them, and with more workers than GPUs they begin anew. Errors: kUsage for
// what is no such list, or names one twice; as gpu_devices();
// kNotFound if there is none of a number.
Result<std::vector<int>> parse_gpus(const std::string& text, const GpusHere& here);

}  // namespace speedo
