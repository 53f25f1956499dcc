// Row checksums: CRC-32C of each row of the journal. So bits that change on the disk are found, not
// served. SQLite's own pages have no checksums.
// Threads: pure functions.
// See:     docs/formats.md, "The journal".
#ifndef STAGECOACH_COORDINATOR_JOURNAL_ROW_CHECKSUMS_H_
#define STAGECOACH_COORDINATOR_JOURNAL_ROW_CHECKSUMS_H_

#include <cstdint>
#include <string>

#include "coordinator/job/view/job_view.h"

namespace stagecoach {

// measures: as they are stored.
uint32_t RecordChecksum(const std::string& job, const JobRecord& record,
                        const std::string& measures);
uint32_t EntryChecksum(const std::string& job, uint64_t sequence, double submitted_unix_seconds,
                       const std::string& spec, const std::string& owner);
uint32_t TextChecksum(const std::string& job, const std::string& text);  // of a state, of pictures

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_ROW_CHECKSUMS_H_
