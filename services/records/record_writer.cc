#include "services/records/record_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/records/record_files.h"

namespace stagecoach {
namespace {

// The writer looks this often for jobs whose files or watches failed.
constexpr std::chrono::milliseconds kTurn(500);
// Of the job loop, to say how a job stands; a line without the stages' part is better than none.
constexpr std::chrono::seconds kAnswer(1);
constexpr std::chrono::seconds kLeave(10);

}  // namespace

RecordSource SourceOf(JobManager* manager) {
  return {[manager](const std::string& id, uint64_t after, JobManager::Watcher watcher,
                    std::function<void(absl::Status)> ended) {
            manager->Watch(id, after, std::move(watcher), std::move(ended));
          },
          [manager](const std::string& id, std::function<void(absl::StatusOr<JobView>)> done) {
            manager->Get(id, std::move(done));
          }};
}

// Between the watches' callbacks and the worker. Every opening of a watch has a number; what an
// older one still says is not heard any more.
struct RecordWriter::Shared {
  enum class Watch { kWanted, kOpen, kFull, kFailed, kEnded };
  struct Job {
    Watch watch = Watch::kWanted;
    uint64_t opening = 0;
    double retry_at_seconds = 0;  // kFailed: not before
  };
  struct Item {
    std::string job;
    uint64_t opening;
    JobRecord record;
  };

  std::mutex mutex;  // guards what follows
  std::condition_variable changed, idle;
  std::map<std::string, Job> jobs;  // followed and not written to their end
  std::set<std::string> leaving;    // not followed any more; the writer may still have their files
  std::deque<Item> queue;
  size_t capacity = 0;
  bool stopping = false, writing = false;

  // The job's entry if that opening is the current one.
  Job* Current(const std::string& id, uint64_t opening) {
    const auto found = jobs.find(id);
    return found == jobs.end() || found->second.opening != opening ? nullptr : &found->second;
  }

  bool OnRecord(const std::string& id, uint64_t opening, const JobRecord& record) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      Job* const job = Current(id, opening);
      if (job == nullptr) return false;
      if (queue.size() >= capacity) {
        job->watch = Watch::kFull;
        return false;
      }
      queue.push_back({id, opening, record});
      queue.back().record.written.clear();  // the files have no texts
    }
    changed.notify_one();
    return true;
  }

  void OnEnded(const std::string& id, uint64_t opening, const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex);
    Job* const job = Current(id, opening);
    if (job == nullptr) return;
    // A job that is not known any more has no record to come either.
    job->watch = status.ok() || absl::IsNotFound(status) ? Watch::kEnded : Watch::kFailed;
  }
};

// What only the writing thread has.
class RecordWriter::Worker {
 public:
  Worker(const RecordWriterOptions& options, RecordSource source, std::shared_ptr<Shared> shared)
      : options_(options), source_(std::move(source)), shared_(std::move(shared)) {}

  void Run() {
    while (true) {
      std::deque<Shared::Item> items;
      bool stopping = false;
      {
        std::unique_lock<std::mutex> lock(shared_->mutex);
        shared_->changed.wait_for(lock, kTurn, [this] {
          return shared_->stopping || !shared_->queue.empty() || !shared_->leaving.empty() ||
                 HasWanted();
        });
        items.swap(shared_->queue);
        stopping = shared_->stopping;
        shared_->writing = true;
      }
      WriteAll(items);
      if (stopping && items.empty()) return;
      if (!stopping) OpenWatches();
      {
        std::lock_guard<std::mutex> lock(shared_->mutex);
        shared_->writing = false;
        LeaveLocked();
      }
      shared_->idle.notify_all();
    }
  }

 private:
  void LeaveLocked() {
    for (const std::string& id : shared_->leaving) {
      files_.erase(id);
      failing_.erase(id);
    }
    shared_->leaving.clear();
  }

  bool HasWanted() const {
    for (const auto& [id, job] : shared_->jobs) {
      if (job.watch == Shared::Watch::kWanted) return true;
    }
    return false;
  }

  void WriteAll(const std::deque<Shared::Item>& items) {
    std::map<std::string, std::vector<JobRecord>> by_job;
    {
      std::lock_guard<std::mutex> lock(shared_->mutex);
      for (const Shared::Item& item : items) {
        if (shared_->Current(item.job, item.opening) == nullptr) continue;
        by_job[item.job].push_back(item.record);
      }
    }
    for (const auto& [id, records] : by_job) WriteJob(id, records);
  }

  void WriteJob(const std::string& id, const std::vector<JobRecord>& records) {
    const auto files = files_.find(id);
    if (files == files_.end()) return;
    const bool has_step = std::any_of(records.begin(), records.end(), [](const JobRecord& r) {
      return r.kind == JobRecord::Kind::kStep;
    });
    const absl::Status written = files->second.Write(records, has_step ? ViewOf(id) : std::nullopt,
                                                     options_.clock->UnixSeconds());
    if (!written.ok()) return Failed(id, written);
    failing_.erase(id);
    if (!files->second.tail().finished) return;
    Forget(id);
  }

  std::optional<JobView> ViewOf(const std::string& id) {
    const auto promise = std::make_shared<std::promise<absl::StatusOr<JobView>>>();
    std::future<absl::StatusOr<JobView>> future = promise->get_future();
    source_.get(id,
                [promise](absl::StatusOr<JobView> view) { promise->set_value(std::move(view)); });
    if (future.wait_for(kAnswer) != std::future_status::ready) return std::nullopt;
    absl::StatusOr<JobView> view = future.get();
    if (!view.ok()) return std::nullopt;
    return std::move(*view);
  }

  // Opens what is not open and may be: new jobs, full queues that are empty now, failures of old.
  void OpenWatches() {
    const double now = options_.clock->MonotonicSeconds();
    std::vector<std::pair<std::string, uint64_t>> openings;
    std::vector<std::string> ended;
    {
      std::lock_guard<std::mutex> lock(shared_->mutex);
      const bool room = shared_->queue.empty();
      for (auto& [id, job] : shared_->jobs) {
        // In order, but without a record of the end: there is no more to come.
        if (job.watch == Shared::Watch::kEnded && room) ended.push_back(id);
        const bool due = job.watch == Shared::Watch::kWanted ||
                         (job.watch == Shared::Watch::kFull && room) ||
                         (job.watch == Shared::Watch::kFailed && now >= job.retry_at_seconds);
        if (!due) continue;
        job.watch = Shared::Watch::kOpen;
        job.retry_at_seconds = now + options_.retry_seconds;
        openings.emplace_back(id, ++job.opening);
      }
    }
    for (const std::string& id : ended) Forget(id);
    for (const auto& [id, opening] : openings) OpenWatch(id, opening);
  }

  void OpenWatch(const std::string& id, uint64_t opening) {
    if (files_.count(id) == 0) {
      absl::StatusOr<RecordFiles> files = RecordFiles::Open(absl::StrCat(options_.folder, "/", id));
      if (!files.ok()) return Failed(id, files.status());
      if (files->tail().finished) return Forget(id);
      files_.emplace(id, std::move(*files));
    }
    source_.watch(
        id, files_.at(id).tail().number,
        [shared = shared_, id, opening](const JobRecord& record) {
          return shared->OnRecord(id, opening, record);
        },
        [shared = shared_, id, opening](const absl::Status& status) {
          shared->OnEnded(id, opening, status);
        });
  }

  // The files are closed and the watch given up; both begin anew after a while.
  void Failed(const std::string& id, const absl::Status& why) {
    files_.erase(id);
    if (failing_[id]++ == 0) {
      spdlog::warn("records of job {}: {}; tried again every {} s", id, why.ToString(),
                   options_.retry_seconds);
    }
    std::lock_guard<std::mutex> lock(shared_->mutex);
    const auto job = shared_->jobs.find(id);
    if (job == shared_->jobs.end()) return;
    ++job->second.opening;
    job->second.watch = Shared::Watch::kFailed;
    job->second.retry_at_seconds = options_.clock->MonotonicSeconds() + options_.retry_seconds;
  }

  void Forget(const std::string& id) {
    files_.erase(id);
    failing_.erase(id);
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->jobs.erase(id);
  }

  const RecordWriterOptions options_;
  const RecordSource source_;
  const std::shared_ptr<Shared> shared_;
  std::map<std::string, RecordFiles> files_;
  std::map<std::string, int> failing_;  // failures since the job was last heard of
};

RecordWriter::RecordWriter(const RecordWriterOptions& options, RecordSource source)
    : shared_(std::make_shared<Shared>()) {
  shared_->capacity = options.queued_records;
  thread_ = Thread("records", [worker = std::make_shared<Worker>(options, std::move(source),
                                                                 shared_)] { worker->Run(); });
}

RecordWriter::~RecordWriter() { Stop(); }

void RecordWriter::Follow(const std::string& job) {
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->jobs.try_emplace(job);
  }
  shared_->changed.notify_one();
}

void RecordWriter::Leave(const std::string& job) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  shared_->jobs.erase(job);
  shared_->leaving.insert(job);
  shared_->changed.notify_one();
  shared_->idle.wait_for(lock, kLeave,
                         [&] { return shared_->stopping || !shared_->leaving.contains(job); });
}

bool RecordWriter::CatchUp(double seconds) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  return shared_->idle.wait_for(lock, std::chrono::duration<double>(seconds),
                                [this] { return shared_->queue.empty() && !shared_->writing; });
}

void RecordWriter::Stop() {
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_one();
  thread_.Join();
}

}  // namespace stagecoach
