#pragma once

#include <memory>

#include <speedo/backend/device_steps.hpp>
#include <speedo/base/result.hpp>

#include "gpu/gpu_device.hpp"
#include "gpu/launch/queue.hpp"
#include "gpu/steps/step_recorder.hpp"

namespace speedo::gpu {

// DeviceSteps on a queue. All three outlive it; the queue's driver is `recorder`. `can_record`:
// whether recordings are wanted. Error: kFull.
Result<std::unique_ptr<DeviceSteps>> make_device_steps(Queue& queue, GpuDevice& device,
                                                       StepRecorder& recorder,
                                                       bool can_record);

}  // namespace speedo::gpu
