// ClassesText: the number of classes of a network, for errors about labels.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_CLASSES_TEXT_H_
#define STAGECOACH_STAGE_DATA_FORMATS_CLASSES_TEXT_H_

#include <cstdint>
#include <string>

#include "plan/job/job_spec.h"

namespace stagecoach {

// If the network has such a field, with its name: "model.resnet.classes = 10".
std::string ClassesText(const JobSpec& spec, int64_t classes);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_CLASSES_TEXT_H_
