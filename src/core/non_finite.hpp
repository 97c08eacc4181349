#pragma once

#include <string>

#include <speedo/base/result.hpp>
#include <speedo/core/bucket.hpp>

namespace speedo {

class Net;

// Where values first went wrong, for people: "blob 'ip1' of layer 'ip1'". Empty: nothing is found
// that is NaN or infinite.

// Looks at the weights, then rehearses so many forward passes, from the batch that the net's span
// says, and looks at what each layer makes. Statistics that passes change change. Errors: kData.
Result<std::string> find_non_finite_values(Net& net, int passes);

// Of the gradients in this range of the arena, the parameter that is nearest to the loss.
std::string find_non_finite_gradients(Net& net, const Bucket& range);

}  // namespace speedo
