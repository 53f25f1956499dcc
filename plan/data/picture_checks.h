// Common rules of picture sources: their inputs, and the ranges of their fields.
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

// The inputs of a sample: images [height, width, channels], and labels.
std::vector<DataInput> PictureInputs();

// Whether the fields fit each other and the network's images. kind: "cifar".
absl::Status CheckPictureFields(const std::string& kind, const PictureFields& fields,
                                const Network& network);

// A part of that check: only images with colours may have changes of colours. prefix: "data.idx.".
absl::Status CheckColours(const std::string& prefix, const PictureFields& fields,
                          const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_PICTURE_CHECKS_H_
