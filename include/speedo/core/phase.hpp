#pragma once

namespace speedo {

enum class Phase { kTrain, kTest };

}  // namespace speedo
