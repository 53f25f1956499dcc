#include "services/common/process/last_death.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/job_name.h"

namespace stagecoach {
namespace {

struct FatalSignal {
  int number;
  const char* name;
};
constexpr std::array<FatalSignal, 5> kFatalSignals = {{{SIGSEGV, "SIGSEGV"},
                                                       {SIGABRT, "SIGABRT"},
                                                       {SIGBUS, "SIGBUS"},
                                                       {SIGILL, "SIGILL"},
                                                       {SIGFPE, "SIGFPE"}}};
constexpr size_t kLongestLine = 512, kLongestWord = 63;

// What the handler reads.
std::array<struct sigaction, kFatalSignals.size()> before{};
std::atomic<CurrentWork*> watched{nullptr};
std::atomic<int> record{-1};
std::atomic<pid_t> teller{0};  // the thread that met the first signal; 0: none did

std::string PathIn(const std::string& folder) { return absl::StrCat(folder, "/last_death"); }

// A line put together as a signal handler may: without memory, locks or the library.
class Line {
 public:
  void Add(const char* text) {
    for (; *text != '\0' && size_ < text_.size() - 1; ++text) text_[size_++] = *text;
  }
  void Add(uint64_t number) {
    std::array<char, 21> digits{};
    size_t first = digits.size() - 1;
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    Add(&digits[first]);
  }
  // Ends it. There is nothing to be done about a write that fails.
  void Write(int descriptor) {
    text_[size_] = '\n';
    static_cast<void>(!write(descriptor, text_.data(), size_ + 1));
  }

 private:
  std::array<char, kLongestLine> text_{};
  size_t size_ = 0;
};

void AddWork(const CurrentWork::View& work, Line* line) {
  if (work.instruction == nullptr) return;
  line->Add(" job=");
  line->Add(work.job.data());
  line->Add(" term=");
  line->Add(work.term);
  line->Add(" generation=");
  line->Add(work.generation);
  line->Add(" step=");
  line->Add(work.step);
  if (work.micro_batch >= 0) {
    line->Add(" micro_batch=");
    line->Add(static_cast<uint64_t>(work.micro_batch));
  }
  line->Add(" instruction=");
  line->Add(work.instruction);
  if (work.operation == nullptr) return;
  line->Add(" operation=");
  line->Add(work.operation);
}

void TellDeath(const char* signal_name) {
  Line line;
  line.Add("signal=");
  line.Add(signal_name);
  AddWork(watched.load()->Look(), &line);
  const int file = record.load();
  if (file >= 0) {
    static_cast<void>(!ftruncate(file, 0));
    line.Write(file);
  }
  // A pipe that nobody reads would keep the process; one that can be written at all has room for a
  // line.
  pollfd log{STDERR_FILENO, POLLOUT, 0};
  if (poll(&log, 1, 0) == 1 && (log.revents & POLLOUT) != 0) line.Write(STDERR_FILENO);
}

void OnFatalSignal(int number, siginfo_t* info, void*) {
  pid_t first = 0;
  if (teller.compare_exchange_strong(first, gettid())) {
    TellDeath(FatalSignalName(number));
  } else if (first != gettid()) {
    sleep(1);  // the first one is about to end the process, if its fault comes again
  }
  for (size_t i = 0; i < kFatalSignals.size(); ++i) {
    if (kFatalSignals[i].number == number) sigaction(number, &before[i], nullptr);
  }
  // A fault comes again with the instruction that made it. One that was sent, or that may be
  // ignored, does not.
  const bool comes_again =
      info->si_code > 0 && !(number == SIGBUS && info->si_code == BUS_MCEERR_AO);
  if (!comes_again) raise(number);
}

absl::Status FolderError(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat("--state-dir: ", path, ": ", strerror(errno),
                                                    "; give a folder that can be written"));
}

// Of an instruction or an operation.
bool IsWord(const std::string& text) {
  return !text.empty() && text.size() <= kLongestWord &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '_';
         });
}

std::string ReadLine(int descriptor) {
  std::string text(kLongestLine, '\0');
  const ssize_t got = pread(descriptor, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

}  // namespace

const char* FatalSignalName(int number) {
  for (const FatalSignal& fatal : kFatalSignals) {
    if (fatal.number == number) return fatal.name;
  }
  return nullptr;
}

void HandleFatalSignals(CurrentWork* work) {
  watched = work;
  struct sigaction action {};
  action.sa_sigaction = OnFatalSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const FatalSignal& fatal : kFatalSignals) sigaddset(&action.sa_mask, fatal.number);
  for (size_t i = 0; i < kFatalSignals.size(); ++i) {
    sigaction(kFatalSignals[i].number, &action, &before[i]);
  }
}

CurrentWork* WatchedWork() { return watched; }

std::optional<StageDeath> ParseDeath(absl::string_view line) {
  if (line.empty() || line.back() != '\n') return std::nullopt;  // it was cut off
  line.remove_suffix(1);
  std::map<std::string, std::string> words;
  for (const absl::string_view word : absl::StrSplit(line, ' ')) {
    words.insert(
        std::pair<std::string, std::string>(absl::StrSplit(word, absl::MaxSplits('=', 1))));
  }
  StageDeath death;
  death.signal = words["signal"];
  bool known = false;
  for (const FatalSignal& fatal : kFatalSignals) known = known || death.signal == fatal.name;
  if (!known) return std::nullopt;
  if (!words.contains("job")) return death;
  Fence& fence = death.fence;
  fence.job = words["job"];
  death.instruction = words["instruction"];
  // Its text lies in memory that the process may have overwritten before it died of that.
  if (IsWord(words["operation"])) death.operation = words["operation"];
  const bool whole = IsWord(death.instruction) && IsJobName(fence.job) &&
                     absl::SimpleAtoi(words["term"], &fence.term) &&
                     absl::SimpleAtoi(words["generation"], &fence.generation) &&
                     absl::SimpleAtoi(words["step"], &fence.step) &&
                     (!words.contains("micro_batch") ||
                      absl::SimpleAtoi(words["micro_batch"], &death.micro_batch.value));
  if (!whole) return std::nullopt;
  return death;
}

std::optional<StageDeath> ReadDeath(const std::string& folder) {
  const int descriptor = open(PathIn(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return std::nullopt;
  const std::string line = ReadLine(descriptor);
  close(descriptor);
  return ParseDeath(line);
}

absl::StatusOr<std::unique_ptr<LastDeath>> LastDeath::Open(const std::string& folder) {
  const std::string path = PathIn(folder);
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return FolderError(path);
  return std::unique_ptr<LastDeath>(new LastDeath(ParseDeath(ReadLine(descriptor)), descriptor));
}

LastDeath::LastDeath(std::optional<StageDeath> death, int descriptor)
    : death_(std::move(death)), descriptor_(descriptor) {
  record = descriptor_;
}

LastDeath::~LastDeath() {
  int ours = descriptor_;
  record.compare_exchange_strong(ours, -1);
  close(descriptor_);
}

void LastDeath::Told() {
  death_.reset();
  static_cast<void>(!ftruncate(descriptor_, 0));
}

}  // namespace stagecoach
