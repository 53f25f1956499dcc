// RecordWriter: keeps every job's history as files, <folder>/<job>/, while it happens. It reads the
// job's records as any watcher does. So it can stop, fall behind or start late and loses nothing:
// metrics.jsonl already says from which record on to read.
// Ownership: shares its queue with the watches it opened, which may outlive it. The source must not
//            be used after the manager behind it is gone: Stop before that.
// Threads:   Follow, Leave and Stop from any thread. Follow waits for no file. One
//            thread writes. On the job loop only a bounded queue is filled. When it is full the
//            watch ends. Once there is room, it is opened again from the last written record. A job
//            that was purged is let go of; its written files stay.
// Errors:    a file that cannot be written is logged once and tried again every retry_seconds.
// Units:     lines appear within about a second of their record.
#ifndef STAGECOACH_SERVICES_RECORDS_RECORD_WRITER_H_
#define STAGECOACH_SERVICES_RECORDS_RECORD_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "base/threads/thread.h"
#include "coordinator/loop/job_manager.h"

namespace stagecoach {

// Where records come from: JobManager's functions of these names, with their contracts.
struct RecordSource {
  std::function<void(const std::string& id, uint64_t after, JobManager::Watcher watcher,
                     std::function<void(absl::Status)> ended)>
      watch;
  std::function<void(const std::string& id, std::function<void(absl::StatusOr<JobView>)> done)> get;
};
RecordSource SourceOf(JobManager* manager);

struct RecordWriterOptions {
  std::string folder;  // of all jobs' folders
  size_t queued_records = 4096;
  double retry_seconds = 5;
  const Clock* clock = SystemClock::Get();
};

class RecordWriter {
 public:
  RecordWriter(const RecordWriterOptions& options, RecordSource source);
  ~RecordWriter();  // Stop

  // From now on, to the job's end; harmless to repeat.
  void Follow(const std::string& job);
  // The opposite: no file of the job is open or written when it returns. Waits for the writer's turn,
  // at most some seconds: a disk may be stuck.
  void Leave(const std::string& job);
  // Waits until all records that the watches gave are written; false: not within so many seconds.
  // Call it before the source ends, as lines take the job's state from the source.
  bool CatchUp(double seconds);
  // Writes what is queued and ends.
  void Stop();

 private:
  struct Shared;
  class Worker;
  const std::shared_ptr<Shared> shared_;
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_RECORDS_RECORD_WRITER_H_
