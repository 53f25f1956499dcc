// SpecDifference: the differences of two job specs, for people. Both are brought to their full form
// first, so a field that one leaves out and the other sets to its default is no difference. Nor is a
// path in a bucket, where the coordinator has put a data set of its objects in its place.
// Threads:   pure function.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_SPEC_DIFFERENCE_H_
#define STAGECOACH_SERVICES_CLI_SPEC_SPEC_DIFFERENCE_H_

#include <string>

#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

// One line a field, "  training.steps: 60 -> 61"; empty if the specs are equal.
std::string SpecDifference(const v1::JobSpec& from, const v1::JobSpec& to);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_SPEC_DIFFERENCE_H_
