#include "plan/job/held_out.h"

namespace stagecoach {

bool AnswersForImages(const Network& network) {
  const Objective& objective = network.objective;
  return network.InputNamed("images").valid() && objective.operation == "cross_entropy" &&
         objective.target_type.element == Element::kIds &&
         objective.target_type.shape.elements() == 1;
}

}  // namespace stagecoach
