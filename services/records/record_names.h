// RecordNames: the names of the files of a job's history, in the folder with the job's id.
// See: docs/formats.md, "A job's records".
#ifndef STAGECOACH_SERVICES_RECORDS_RECORD_NAMES_H_
#define STAGECOACH_SERVICES_RECORDS_RECORD_NAMES_H_

namespace stagecoach {

inline constexpr char kMetricsRecords[] = "metrics.jsonl";
inline constexpr char kEventsPrefix[] = "events.out.tfevents.";  // TensorBoard's

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_RECORDS_RECORD_NAMES_H_
