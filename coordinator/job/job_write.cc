// A job with `write`: mini-batch after mini-batch of its lines is written with the loaded weights.
// A command writes some tokens of each text and pauses, so that people see them as they come. Such
// a job trains nothing: it has no snapshots, no checkpoints and no export.
// The first command of a mini-batch also computes its sources or prompts. So commands differ too
// much for an average: JobState::pace stays unknown, and each has the deadline of a first step.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/error_place.h"
#include "coordinator/job/job_transition.h"
#include "coordinator/job/view/record_page.h"
#include "plan/job/sorted_lines.h"

namespace stagecoach {
namespace {

// A command takes about this long: people see tokens as they come, and the commands' own cost is
// small beside their work. Of a translation nothing is seen before its end.
struct CommandSeconds {
  double least = 0, most = 0;
};
constexpr CommandSeconds kTextSeconds = {0.1, 0.4}, kTranslationSeconds = {0.5, 2};
// Stages idle at the beginning and end of a command for K - 1 turns of a group. So it has this many
// times as many turns, however long they take.
constexpr int64_t kTurnsOfIdle = 4;
// The first command of a mini-batch has as many rounds as took this long in the one before. Rounds
// may be a hundred times slower there, as with longer prompts, and that still is a second.
constexpr double kBeginSeconds = 0.01;
constexpr int64_t kMostRounds = 1024;
// A watcher gets a record as one message, and a page of records at once. A single piece may be
// longer.
constexpr size_t kMostRecordBytes = size_t{256} << 10;
constexpr int64_t kMostOffset = int64_t{1} << 30;  // no text is so long

// As many of these rounds, which took `seconds`, as take `wanted`; all of them if they took less.
int64_t RoundsWithin(double wanted, int64_t rounds, double seconds) {
  const double share = wanted / std::max(seconds, wanted);
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(rounds) * share));
}

// After a command that paused. At the end of a mini-batch a command has fewer rounds than it may
// have, so its time tells nothing of their cost.
void AdaptRounds(const JobState& state, double seconds, JobWriting& writing) {
  const JobSpec& spec = state.job->spec;
  const CommandSeconds wanted =
      spec.write->translate.has_value() ? kTranslationSeconds : kTextSeconds;
  const int64_t groups = spec.training.micro_batches;
  const int64_t idle = std::ssize(state.slots) - 1;
  const int64_t least = (kTurnsOfIdle * idle + groups - 1) / groups;
  writing.first_rounds = RoundsWithin(kBeginSeconds, writing.rounds, seconds);
  const int64_t rounds = seconds < wanted.least
                             ? std::min(2 * writing.rounds, kMostRounds)
                             : RoundsWithin(wanted.most, writing.rounds, seconds);
  writing.rounds = std::max(least, rounds);
}

struct LineRange {
  int64_t first = 0, last = 0;  // [first, last)
  bool contains(int64_t line) const { return line >= first && line < last; }
};

// Places of the mini-batch at hand among the lines as they are ordered.
LineRange PlacesAtHand(const JobState& state) {
  const JobSpec& spec = state.job->spec;
  const int64_t first = static_cast<int64_t>(state.step) * spec.training.batch_size;
  return {first, std::min(first + spec.training.batch_size, std::ssize(spec.write->lines))};
}

// The lines that may be there. Prompts keep their order, and sentences are sorted within windows.
LineRange LinesAtHand(const JobState& state) {
  const JobSpec& spec = state.job->spec;
  const LineRange at_hand = PlacesAtHand(state);
  if (!spec.write->translate.has_value()) return at_hand;
  const int64_t window = SortedLines(spec.training);
  const int64_t last = (at_hand.last + window - 1) / window * window;
  return {at_hand.first / window * window, std::min(last, std::ssize(spec.write->lines))};
}

// What cannot be of the mini-batch at hand. Empty: nothing.
std::string StrayText(const JobState& state, const std::vector<WrittenPiece>& pieces, bool over) {
  const LineRange may = LinesAtHand(state);
  for (const WrittenPiece& piece : pieces) {
    if (may.contains(piece.line) && piece.offset >= 0 && piece.offset <= kMostOffset) continue;
    return absl::StrCat("wrote of line ", piece.line, " from byte ", piece.offset,
                        " on, and mini-batch ", state.step, " has lines from ", may.first, " to ",
                        may.last - 1, " with at most ", kMostOffset, " bytes");
  }
  const LineRange all = PlacesAtHand(state);
  const int64_t lines = all.last - all.first;
  if (!over || state.writing.done >= lines) return "";
  return absl::StrCat("ended mini-batch ", state.step, " with ", state.writing.done, " of its ",
                      lines, " texts done");
}

void CountTexts(const std::vector<WrittenPiece>& pieces, JobWriting& writing) {
  for (const WrittenPiece& piece : pieces) {
    writing.bytes += std::ssize(piece.text);
    writing.done += piece.done ? 1 : 0;
    writing.tokens += piece.done ? piece.tokens : 0;
  }
}

// A mini-batch may take hours, and each load begins it anew. So failures and deaths in it are at
// one place only if no try came further between them. The texts are the same each time: their bytes
// and ends say how far a try is. A fault at one place ends the job still, as none comes further.
void NoteFurthest(JobState& state) {
  const int64_t written = state.writing.bytes + state.writing.done;
  if (written <= state.failures.furthest_written) return;
  state.failures.furthest_written = written;
  state.failures.steps.clear();
  state.failures.deaths.count = 0;
}

}  // namespace

bool Writes(const JobState& state) { return state.job->spec.write.has_value(); }

int64_t WriteBatches(const JobSpec& spec) {
  const int64_t batch = spec.training.batch_size;
  return (std::ssize(spec.write->lines) + batch - 1) / batch;
}

uint64_t LoadedStep(const JobState& state) {
  if (!Writes(state)) return state.step;
  if (state.job->spec.resume.job.empty()) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(state.origin.resume_step, 0));
}

uint64_t StepOf(const JobState& state, const Fence& fence) {
  return Writes(state) ? state.step : fence.step;
}

void JobTransition::StartWriting() {
  state_.writing = {};
  SendWrite();
}

void JobTransition::SendWrite() {
  JobWriting& writing = state_.writing;
  if (!writing.goes_on) {
    writing = {.rounds = writing.first_rounds,
               .first_rounds = writing.first_rounds,
               .begun_seconds = now_.seconds};
  }
  SendRuns(Activity::kWrite, WorkKind::kWrite, state_.step);
}

void JobTransition::FinishWrite() {
  StageSlot& last = state_.slots[SlotOfLastCell(state_)];
  std::vector<WrittenPiece> pieces = std::exchange(last.report.written, {});
  const bool over = last.report.write_over;
  JobWriting& writing = state_.writing;
  CountTexts(pieces, writing);
  if (const std::string stray = StrayText(state_, pieces, over); !stray.empty()) {
    const std::string name = last.stage.name;
    Blame(state_, name, "error");
    const int stage = static_cast<int>(state_.slots.size()) - 1;
    return StageFailed({name}, TextAt(stray, Place(state_, stage)));
  }
  const double seconds = now_.seconds - state_.operation.started_seconds;
  state_.results.step_seconds = seconds;
  ShowReports(state_);
  NoteFurthest(state_);
  if (!over) AdaptRounds(state_, seconds, writing);
  writing.goes_on = !over;
  if (over) {
    state_.failures.furthest_written = 0;
    const double all = now_.seconds - writing.begun_seconds;
    state_.results.tokens_per_second = all > 0 ? static_cast<double>(writing.tokens) / all : 0;
    ++state_.step;
  }
  NoteProgress(state_, now_.seconds);
  if (over || !pieces.empty()) RecordWritten(std::move(pieces));
  if (state_.step >= LastStep(state_)) return End(JobPhase::kSucceeded, "");
  SendWrite();
}

void JobTransition::RecordWritten(std::vector<WrittenPiece> pieces) {
  auto piece = pieces.begin();
  do {
    JobRecord& record = Record(JobRecord::Kind::kWritten, "");
    record.tokens_per_second = state_.results.tokens_per_second;
    record.step_seconds = state_.results.step_seconds;
    for (size_t bytes = 0; piece != pieces.end() && bytes < kMostRecordBytes; ++piece) {
      bytes += TextBytes(*piece);
      record.written.push_back(std::move(*piece));
    }
  } while (piece != pieces.end());
}

}  // namespace stagecoach
