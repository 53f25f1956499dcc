// ClassesText: how many classes a network has, for errors about labels.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_CLASSES_TEXT_H_
#define STAGECOACH_STAGE_DATA_FORMATS_CLASSES_TEXT_H_

#include <cstdint>
#include <string>

#include "plan/job/job_spec.h"

namespace stagecoach {

// By the field that says it, "model.resnet.classes = 10", where the network has it.
std::string ClassesText(const JobSpec& spec, int64_t classes);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_CLASSES_TEXT_H_
