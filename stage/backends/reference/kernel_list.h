// The kernels of the reference back end, from the files of kernels/.
// In every precision they get activations as float32 (bfloat16.cc); output 0 may be an input.
#ifndef STAGECOACH_STAGE_BACKENDS_REFERENCE_KERNEL_LIST_H_
#define STAGECOACH_STAGE_BACKENDS_REFERENCE_KERNEL_LIST_H_

#include "stage/backends/kernel_table.h"
#include "stage/backends/reference/reference_backend.h"

namespace stagecoach::reference {

using KernelList = KernelListOf<ReferenceBackend>;
const KernelTable<ReferenceBackend>& Kernels();

}  // namespace stagecoach::reference

#endif  // STAGECOACH_STAGE_BACKENDS_REFERENCE_KERNEL_LIST_H_
