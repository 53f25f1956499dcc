// RecordPage: how much of a job's history is read and kept at once. A record of texts may be a
// thousand times as long as one of a step, so a number of records alone bounds no memory.
// Threads: pure functions.
#ifndef STAGECOACH_COORDINATOR_JOB_VIEW_RECORD_PAGE_H_
#define STAGECOACH_COORDINATOR_JOB_VIEW_RECORD_PAGE_H_

#include <cstddef>
#include <span>

#include "coordinator/job/view/job_view.h"

namespace stagecoach {

// Bytes of what is written, with about the memory of a piece itself.
size_t TextBytes(const WrittenPiece& piece);
size_t TextBytes(const JobRecord& record);  // of its texts; 0 for most kinds

// A page ends with the record that reaches this many. So it has a record more at most, and one at
// least.
inline constexpr size_t kPageTextBytes = size_t{1} << 20;
// A page of at most `most` records is full: there may be more behind it.
bool IsFullPage(std::span<const JobRecord> records, size_t most);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_VIEW_RECORD_PAGE_H_
