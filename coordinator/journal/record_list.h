// RecordList: the list of a record as the text of one column of the journal, `measures`. It has the
// texts of a record of kind kWritten, and the measures of any other.
// Threads: pure functions.
// Errors:  DATA_LOSS: not a text of ListText.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_RECORD_LIST_H_
#define STAGECOACH_COORDINATOR_JOURNAL_RECORD_LIST_H_

#include <string>

#include "absl/status/status.h"
#include "coordinator/job/view/job_view.h"

namespace stagecoach {

std::string ListText(const JobRecord& record);
absl::Status ReadList(const std::string& text, JobRecord* record);  // by its kind

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_RECORD_LIST_H_
