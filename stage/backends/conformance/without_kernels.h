// Operations that no back end has a kernel for yet: a test of each back end holds it to this list.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_WITHOUT_KERNELS_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_WITHOUT_KERNELS_H_

#include <string>
#include <vector>

namespace stagecoach::conformance {

// Names, one a line. If the first missing kernel of a case is another operation's, the list has
// that operation.
inline std::vector<std::string> OperationsWithoutKernels() { return {}; }

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_WITHOUT_KERNELS_H_
