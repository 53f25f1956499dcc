// The tables of angles that rotary's kernels turn by (operations/attention/rotary.h). They are as
// long as the context, so all calls of a process with the same table share it.
// Ownership: shared; tables are freed with the last pointer.
// Threads:   any.
#ifndef STAGECOACH_STAGE_BACKENDS_SHARED_ROTARY_TABLES_H_
#define STAGECOACH_STAGE_BACKENDS_SHARED_ROTARY_TABLES_H_

#include <cstdint>
#include <memory>

#include "operations/attention/rotary.h"

namespace stagecoach {

std::shared_ptr<const RotaryTables> SharedRotaryTables(const RotaryAttributes& attributes,
                                                       int64_t context, int64_t head_width);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_SHARED_ROTARY_TABLES_H_
