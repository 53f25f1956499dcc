// Measures that are no mean over the terms: what is counted class by class (operations/cross_entropy.h), of a step or
// of a whole evaluation. Counts are whole numbers, so a measure has the same bits for every number of micro-batches.
// Names:     "mean_iou"; of class 3 "accuracy/3" and "iou/3".
#ifndef STAGECOACH_COORDINATOR_JOB_CLASS_MEASURES_H_
#define STAGECOACH_COORDINATOR_JOB_CLASS_MEASURES_H_

#include <span>
#include <vector>

#include "network/network.h"
#include "plan/measure.h"

namespace stagecoach {

// Of another batch; `sum` may be empty.
void AddCounts(std::span<const ClassCounts> counts, std::vector<ClassCounts>* sum);

// Where the objective asks for it: of each class right / (targets + guesses - right), in the mean over the classes that
// are the target or the guess of something. The class that the objective ignores is none of them.
void AddMeanIou(const Objective& objective, std::span<const ClassCounts> counts,
                std::vector<Measure>* measures);

// With what is asked for of each class.
void AddClassMeasures(const Objective& objective, std::span<const ClassCounts> counts,
                      std::vector<Measure>* measures);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_CLASS_MEASURES_H_
