// Measures from counts of each class (operations/losses/cross_entropy.h), of a step or of a whole
// evaluation. They are no means over the terms. Counts are whole numbers. So a measure has the same
// bits for every number of micro-batches.
// Names:     "mean_iou"; of class 3 "accuracy/3" and "iou/3".
#ifndef STAGECOACH_COORDINATOR_JOB_VIEW_CLASS_MEASURES_H_
#define STAGECOACH_COORDINATOR_JOB_VIEW_CLASS_MEASURES_H_

#include <span>
#include <vector>

#include "network/network.h"
#include "plan/measure.h"

namespace stagecoach {

// Adds the counts of another batch; `sum` may be empty.
void AddCounts(std::span<const ClassCounts> counts, std::vector<ClassCounts>* sum);

// Adds the mean IoU, if the objective asks for it. For each class the IoU is right / (targets +
// guesses - right). The mean is over the classes that occur as a target or a guess. A class that
// the objective ignores is not among them.
void AddMeanIou(const Objective& objective, std::span<const ClassCounts> counts,
                std::vector<Measure>* measures);

// As AddMeanIou, and adds the measures of each class that the objective asks for.
void AddClassMeasures(const Objective& objective, std::span<const ClassCounts> counts,
                      std::vector<Measure>* measures);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_VIEW_CLASS_MEASURES_H_
