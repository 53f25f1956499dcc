// ForEachCall: the calls of a layer that a forecast counts: those of its forwards, evaluations and
// backwards. An evaluation has the packed weights of the forward.
#ifndef STAGECOACH_PLAN_COSTS_LAYER_CALLS_H_
#define STAGECOACH_PLAN_COSTS_LAYER_CALLS_H_

#include "network/lists/lists.h"

namespace stagecoach {

// body(call, its types, whether the call is of a training step)
template <typename Body>
void ForEachCall(const LayerLists& lists, Body body) {
  for (const CallList* list : {&lists.forward, &lists.backward, &lists.evaluation}) {
    for (const ListedCall& listed : list->calls) {
      body(listed.call, lists.TypesOf(listed.call), list != &lists.evaluation);
    }
  }
}

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_LAYER_CALLS_H_
