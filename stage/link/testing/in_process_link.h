// The two ends of a boundary in one process: messages pass as they are, tensors uncopied.
// Threads: as Link.
#ifndef STAGECOACH_STAGE_LINK_TESTING_IN_PROCESS_LINK_H_
#define STAGECOACH_STAGE_LINK_TESTING_IN_PROCESS_LINK_H_

#include <memory>
#include <utility>

#include "stage/link/link.h"

namespace stagecoach {

std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> MakeInProcessLinkPair(
    const LinkOptions& options);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_TESTING_IN_PROCESS_LINK_H_
