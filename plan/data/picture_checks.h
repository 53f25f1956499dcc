// What sources of pictures have in common: what they give, and what their fields may be.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT naming field, value and remedy.
#ifndef STAGECOACH_PLAN_DATA_PICTURE_CHECKS_H_
#define STAGECOACH_PLAN_DATA_PICTURE_CHECKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "network/network.h"
#include "plan/job/data_kinds.h"
#include "plan/job/picture_fields.h"

namespace stagecoach {

// What is given of a sample: images [height, width, channels], and labels.
std::vector<DataInput> PictureInputs();

// Do the fields go together, and with the images that the network reads? kind: "cifar".
absl::Status CheckPictureFields(const std::string& kind, const PictureFields& fields,
                                const Network& network);

// Part of it: what changes colours is of images that have some. prefix: "data.idx.".
absl::Status CheckColours(const std::string& prefix, const PictureFields& fields,
                          const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_PICTURE_CHECKS_H_
