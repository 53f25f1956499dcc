#include "coordinator/loop/job_manager.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/numbers/machine_random.h"
#include "base/threads/progress.h"
#include "base/threads/thread.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/state_lock.h"
#include "coordinator/loop/job_loop.h"
#include "coordinator/loop/mailbox.h"

namespace stagecoach {
namespace {

constexpr int kEffectThreads = 2;
// Long answers that wait to be copied. Each may hold a spec as text, of a MiB, or a page of a
// thousand views.
constexpr size_t kMostAnswers = 64;
// The loop looks at the clock this often even when nothing is due: the clock may be a manual one.
constexpr double kLongestWaitSeconds = 0.1;

absl::Status Refused(const Mailbox& mailbox) {
  if (mailbox.closed()) return absl::UnavailableError("the coordinator is shutting down");
  return absl::ResourceExhaustedError("the coordinator has too many requests waiting; try again");
}

}  // namespace

struct JobManager::State {
  Parts parts;
  std::unique_ptr<StateLock> lock;
  std::unique_ptr<Journal> journal;
  uint64_t term = 0;
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  std::array<Mailbox, kEffectThreads> effects;
  Mailbox planner, checks, answers{kMostAnswers};
  std::array<ProgressCounter, kEffectThreads> effect_progress;
  ProgressCounter plan_progress, check_progress;
  std::unique_ptr<JobLoop> loop;
  std::mutex arrivals;  // held from a stamp to its post
  std::atomic<uint64_t> next_watch{1};
  std::mutex left_mutex;    // guards left
  std::set<uint64_t> left;  // watches that were given up and whose Unwatch is on its way
  std::atomic<bool> shut_down{false};
  std::array<Thread, kEffectThreads> effect_threads;
  Thread planner_thread, checks_thread, answers_thread;
  Thread loop_thread;

  // Adds the spec of a job that has ended: read here, on the loop's thread, and made a value
  // elsewhere.
  void Answer(absl::StatusOr<JobView> view,
              const std::function<void(absl::StatusOr<JobView>)>& done);
  bool Left(uint64_t watch_id) {
    std::lock_guard<std::mutex> lock(left_mutex);
    return left.contains(watch_id);
  }
  void RunLoop();
  void RunEffects(Mailbox& box, ProgressCounter& progress);
  void RunAnswers();
  // Runs work on the loop thread; done: learns that it was refused.
  template <typename Done>
  void Ask(const Done& done, Mailbox::Work work) {
    if (!mailbox->TryPost(std::move(work))) done(Refused(*mailbox));
  }
  // Runs work on the loop thread with the moment it came in. Stamp and post are one: the loop meets
  // the stamps in order, and one from before Heard was posted before it. Were they two, a lease
  // could end by the stamp of one stage while the heartbeat of another, with an older stamp, is on
  // its way.
  // Through the inner door: a heartbeat refused for want of room would end a lease by our slowness.
  template <typename Done>
  void Arrive(const Done& done, std::function<void(Moment)> work) {
    std::unique_lock<std::mutex> lock(arrivals);
    const Moment now{parts.clock->MonotonicSeconds(), parts.clock->UnixSeconds()};
    const bool accepted = mailbox->Post([work = std::move(work), now] { work(now); });
    lock.unlock();
    if (!accepted) done(Refused(*mailbox));
  }
  double Heard() {
    std::lock_guard<std::mutex> lock(arrivals);
    return parts.clock->MonotonicSeconds();
  }
};

void JobManager::State::Answer(absl::StatusOr<JobView> view,
                               const std::function<void(absl::StatusOr<JobView>)>& done) {
  if (!view.ok() || view->spec != nullptr || view->set_aside) return done(std::move(view));
  if (answers.full()) return done(Refused(answers));  // before the text is read
  absl::StatusOr<std::string> text = loop->SpecText(view->id);
  if (!text.ok()) return done(text.status());
  const bool accepted =
      answers.TryPost([this, view = *std::move(view), text = *std::move(text), done]() mutable {
        absl::StatusOr<JobSpec> spec = parts.codec->Decode(text);
        if (!spec.ok()) return done(spec.status());
        view.spec = std::make_shared<const JobSpec>(*std::move(spec));
        done(std::move(view));
      });
  if (!accepted) done(Refused(answers));
}

void JobManager::State::RunLoop() {
  std::vector<Mailbox::Work> work;
  while (true) {
    const double wait = std::clamp(loop->NextTickSeconds() - parts.clock->MonotonicSeconds(), 0.0,
                                   kLongestWaitSeconds);
    const auto nanos = std::chrono::nanoseconds(static_cast<int64_t>(wait * 1e9));
    const double heard = Heard();  // Take leaves nothing from before
    if (!mailbox->Take(nanos, &work)) break;
    for (Mailbox::Work& one : work) one();
    work.clear();
    loop->Tick(heard);
  }
  loop->Close();
}

void JobManager::State::RunEffects(Mailbox& box, ProgressCounter& progress) {
  const ProgressScope scope(&progress);
  std::vector<Mailbox::Work> work;
  while (box.Take(std::chrono::seconds(1), &work)) {
    for (Mailbox::Work& one : work) {
      if (box.closed()) break;  // nobody is left to hear the result
      one();
    }
  }
}

// To the last one: somebody waits for each.
void JobManager::State::RunAnswers() {
  std::vector<Mailbox::Work> work;
  while (answers.Take(std::chrono::seconds(1), &work)) {
    for (Mailbox::Work& one : work) one();
  }
}

absl::StatusOr<std::unique_ptr<JobManager>> JobManager::Start(const JobManagerOptions& options,
                                                              const Parts& parts) {
  CHECK(parts.stages && parts.checkpoints && parts.file_system && parts.codec && parts.clock)
      << "a job manager needs all of its parts";
  RETURN_IF_ERROR(Annotate(parts.file_system->MakeFolders(options.state_folder), "state folder"));
  auto state = std::make_unique<State>();
  state->parts = parts;
  ASSIGN_OR_RETURN(state->lock, StateLock::Take(options.state_folder));
  ASSIGN_OR_RETURN(state->journal, Journal::Open(options.state_folder + "/journal.sqlite"));
  // By the clock, so that a coordinator whose journal is a copy from before does not take a term
  // that was used since.
  ASSIGN_OR_RETURN(state->term, state->journal->RaiseTerm(LeastTerm(*parts.clock),
                                                          MachineRandom() % kMostSkippedTerms));

  JobLoop::Parts inside;
  inside.options = options;
  inside.outside = parts;
  inside.journal = state->journal.get();
  inside.term = state->term;
  inside.post = [mailbox = state->mailbox](JobLoop::Work work) { mailbox->Post(std::move(work)); };
  inside.effect = [boxes = &state->effects](uint64_t number, JobLoop::Work work) {
    (*boxes)[number % kEffectThreads].Post(std::move(work));
  };
  inside.plan = [box = &state->planner](JobLoop::Work work) { box->Post(std::move(work)); };
  inside.check = [box = &state->checks](JobLoop::Work work) { box->Post(std::move(work)); };
  inside.effect_progress = [counters = &state->effect_progress](uint64_t number) {
    return (*counters)[number % kEffectThreads].count();
  };
  inside.owns_folder = [lock = state->lock.get()] { return lock->Check(); };
  state->loop = std::make_unique<JobLoop>(std::move(inside));
  RETURN_IF_ERROR(state->loop->Open());

  State* const raw = state.get();
  for (int i = 0; i < kEffectThreads; ++i) {
    state->effect_threads[i] = Thread(absl::StrCat("effects-", i), [raw, i] {
      raw->RunEffects(raw->effects[i], raw->effect_progress[i]);
    });
  }
  state->planner_thread =
      Thread("planner", [raw] { raw->RunEffects(raw->planner, raw->plan_progress); });
  state->checks_thread =
      Thread("checks", [raw] { raw->RunEffects(raw->checks, raw->check_progress); });
  state->answers_thread = Thread("answers", [raw] { raw->RunAnswers(); });
  state->loop_thread = Thread("job-loop", [raw] { raw->RunLoop(); });
  return std::unique_ptr<JobManager>(new JobManager(std::move(state)));
}

JobManager::JobManager(std::unique_ptr<State> state) : state_(std::move(state)) {}

JobManager::~JobManager() { Shutdown(); }

bool JobManager::Drain(bool save, double seconds) {
  auto drained = std::make_shared<std::promise<void>>();
  std::future<void> done = drained->get_future();
  const bool posted = state_->mailbox->Post([loop = state_->loop.get(), save, drained] {
    loop->Drain(save, [drained] { drained->set_value(); });
  });
  return !posted ||
         done.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
}

void JobManager::Shutdown() {
  if (state_->shut_down.exchange(true)) return;
  state_->mailbox->Close();
  state_->loop_thread.Join();
  state_->planner.Close();
  state_->planner_thread.Join();
  state_->checks.Close();
  state_->checks_thread.Join();
  state_->answers.Close();
  state_->answers_thread.Join();
  for (Mailbox& box : state_->effects) box.Close();
  for (Thread& thread : state_->effect_threads) thread.Join();
}

uint64_t JobManager::term() const { return state_->term; }

void JobManager::Submit(const std::string& id_or_empty, const JobSpec& spec,
                        std::function<void(absl::StatusOr<JobView>)> done,
                        std::function<bool()> wanted, const JobCaller& caller) {
  state_->Ask(done, [state = state_.get(), id_or_empty,
                     spec = std::make_shared<const JobSpec>(spec), done, wanted, caller] {
    state->loop->Submit(
        id_or_empty, *spec,
        [state, done](absl::StatusOr<JobView> view) { state->Answer(std::move(view), done); },
        wanted, caller);
  });
}

void JobManager::CheckCaller(const JobCaller& caller, const std::string& id,
                             std::function<void(absl::Status)> done) {
  state_->Ask(
      done, [loop = state_->loop.get(), caller, id, done] { done(loop->CheckCaller(caller, id)); });
}

void JobManager::Get(const std::string& id, std::function<void(absl::StatusOr<JobView>)> done) {
  state_->Ask(done,
              [state = state_.get(), id, done] { state->Answer(state->loop->Get(id), done); });
}

void JobManager::List(std::function<void(absl::StatusOr<std::vector<JobView>>)> done) {
  ListPage(0, std::numeric_limits<size_t>::max(), [done](absl::StatusOr<Page> page) {
    if (!page.ok()) return done(page.status());
    done(std::move(page->jobs));
  });
}

void JobManager::ListPage(uint64_t before, size_t most,
                          std::function<void(absl::StatusOr<Page>)> done, const JobCaller& caller) {
  state_->Ask(done, [state = state_.get(), before, most, done, caller] {
    JobLoop::Page page = state->loop->List(before == 0 ? JobLoop::kNewest : before, most, caller);
    // Thousands of views: to copy and to show them is not the loop's work.
    const bool taken = state->answers.TryPost([page = std::move(page), done] {
      Page copies;
      copies.next = page.next;
      copies.jobs.reserve(page.jobs.size());
      for (const std::shared_ptr<const JobView>& view : page.jobs) copies.jobs.push_back(*view);
      done(std::move(copies));
    });
    if (!taken) done(Refused(state->answers));
  });
}

void JobManager::Records(const std::string& id, uint64_t after, int limit,
                         std::function<void(absl::StatusOr<std::vector<JobRecord>>)> done) {
  static_assert(kMostRecords == JobLoop::kRecordsPerPump);
  state_->Ask(done, [loop = state_->loop.get(), id, after, limit, done] {
    done(loop->Records(id, after, limit));
  });
}

void JobManager::Shown(const std::string& id,
                       std::function<void(absl::StatusOr<ShownTexts>)> done) {
  state_->Ask(done, [loop = state_->loop.get(), id, done] { done(loop->Shown(id)); });
}

void JobManager::PinCheckpoints(
    const std::string& id, std::function<void(absl::StatusOr<std::shared_ptr<const void>>)> done) {
  state_->Ask(done, [loop = state_->loop.get(), id, done] { loop->PinCheckpoints(id, done); });
}

void JobManager::RemoveJob(const std::string& id,
                           std::function<void(absl::StatusOr<JobUsage>)> done) {
  state_->Ask(done, [loop = state_->loop.get(), id, done] { loop->RemoveJob(id, done); });
}

void JobManager::RemoveCheckpoints(const std::string& id, const std::vector<uint64_t>& steps,
                                   bool missing_ok,
                                   std::function<void(absl::StatusOr<RemovedCheckpoints>)> done) {
  state_->Ask(done, [loop = state_->loop.get(), id, steps, missing_ok, done] {
    loop->RemoveCheckpoints(id, steps, missing_ok, done);
  });
}

void JobManager::Cancel(const std::string& id, std::function<void(absl::StatusOr<JobView>)> done) {
  state_->Ask(done,
              [state = state_.get(), id, done] { state->Answer(state->loop->Cancel(id), done); });
}

void JobManager::Resume(const std::string& id, int64_t stages,
                        std::function<void(absl::StatusOr<JobView>)> done) {
  state_->Ask(done, [state = state_.get(), id, stages, done] {
    state->Answer(state->loop->Resume(id, stages), done);
  });
}

void JobManager::PlanJob(const JobSpec& spec, std::function<void(absl::StatusOr<Plan>)> done,
                         std::function<bool()> wanted, const JobCaller& caller) {
  state_->Ask(done, [loop = state_->loop.get(), spec, done, wanted, caller] {
    loop->PlanJob(spec, done, wanted, caller);
  });
}

uint64_t JobManager::Watch(const std::string& id, uint64_t after, Watcher watcher,
                           std::function<void(absl::Status)> ended, OnShown on_shown) {
  const uint64_t watch_id = state_->next_watch++;
  state_->Ask(ended, [state = state_.get(), watch_id, id, after, watcher, ended, on_shown] {
    if (!state->Left(watch_id)) state->loop->Watch(watch_id, id, after, watcher, ended, on_shown);
  });
  return watch_id;
}

void JobManager::Unwatch(uint64_t watch_id) {
  {
    std::lock_guard<std::mutex> lock(state_->left_mutex);
    state_->left.insert(watch_id);
  }
  // Through the inner door: it frees, so it must not be refused.
  state_->mailbox->Post([state = state_.get(), watch_id] {
    state->loop->Unwatch(watch_id);
    std::lock_guard<std::mutex> lock(state->left_mutex);
    state->left.erase(watch_id);
  });
}

int64_t JobManager::watches() const { return state_->loop->watches(); }

// Stamped here: what comes in time must not be late because the loop is busy. A stage has one call
// under way, so there is room.
void JobManager::RegisterStage(const StageRegistration& registration,
                               std::function<void(absl::StatusOr<LeaseGrant>)> done,
                               const std::optional<StageDeath>& death) {
  state_->Arrive(done, [loop = state_->loop.get(), registration, done, death](Moment arrived) {
    done(loop->RegisterStage(registration, arrived, death));
  });
}

void JobManager::RenewLease(const StageHeartbeat& heartbeat,
                            std::function<void(absl::StatusOr<LeaseGrant>)> done) {
  state_->Arrive(done, [loop = state_->loop.get(), heartbeat, done](Moment arrived) {
    done(loop->RenewLease(heartbeat, arrived));
  });
}

void JobManager::ListStages(std::function<void(std::vector<StageView>)> done) {
  const bool accepted =
      state_->mailbox->TryPost([loop = state_->loop.get(), done] { done(loop->ListStages()); });
  if (!accepted) done({});
}

}  // namespace stagecoach
