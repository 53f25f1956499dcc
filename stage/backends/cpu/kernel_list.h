// The kernels of the cpu back end, from the files of kernels/.
// They cut their work into blocks that depend on shapes alone (CpuBackend::ForEachPiece).
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_KERNEL_LIST_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_KERNEL_LIST_H_

#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/kernel_table.h"

namespace stagecoach::cpu {

using KernelList = KernelListOf<CpuBackend>;
const KernelTable<CpuBackend>& Kernels();

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_KERNEL_LIST_H_
