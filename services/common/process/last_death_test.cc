// How a process ends by a signal, told by the process itself: each death is that of a child.
#include "services/common/process/last_death.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/sanitized.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/thread.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

char* Page(int protection, int flags, int descriptor) {
  void* const page = mmap(nullptr, 4096, protection, flags, descriptor, 0);
  CHECK(page != MAP_FAILED) << "a page of memory";
  return static_cast<char*>(page);
}

void WriteWhereNobodyMay() {
  *static_cast<volatile char*>(Page(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1)) = 1;
}

class LastDeathTest : public ::testing::Test {
 protected:
  void WriteWhereNoFileIs() const {
    const int file = open((folder_.File("empty")).c_str(), O_RDWR | O_CREAT, 0600);
    *static_cast<volatile char*>(Page(PROT_READ | PROT_WRITE, MAP_SHARED, file)) = 1;
  }

  // A process of a stage in the middle of `work`; the wait status.
  int Run(const std::function<void()>& work, bool with_folder = true) const {
    const pid_t child = fork();
    if (child != 0) {
      int status = 0;
      CHECK_EQ(waitpid(child, &status, 0), child);
      return status;
    }
    const rlimit no_core{};
    setrlimit(RLIMIT_CORE, &no_core);
    const int log = open((folder_.File("log")).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log, STDERR_FILENO);
    CurrentWork current;
    HandleFatalSignals(&current);
    std::unique_ptr<LastDeath> last;
    if (with_folder) last = LastDeath::Open(folder_.path()).value();
    const CurrentWorkScope scope(&current);
    BeginWork({.job = "a", .term = 5, .generation = 2, .step = 12});
    NoteInstruction("backward", MicroBatchId(3));
    NoteOperation("linear");
    work();
    _exit(0);
  }
  std::string Log() const { return FileText(folder_.File("log")); }
  std::optional<StageDeath> Death() const { return ReadDeath(folder_.path()); }
  static StageDeath Expected(const std::string& signal) {
    return {signal,
            {.job = "a", .term = 5, .generation = 2, .step = 12},
            MicroBatchId(3),
            "backward",
            "linear"};
  }

  const TemporaryFolder folder_;
};

TEST_F(LastDeathTest, ASignalOfItsOwnIsToldAndEndsTheProcessAsWithoutAHandler) {
  const struct {
    int number;
    std::function<void()> work;
  } kDeaths[] = {{SIGSEGV, WriteWhereNobodyMay},
                 {SIGBUS, [this] { WriteWhereNoFileIs(); }},
                 {SIGABRT, [] { std::abort(); }},
                 {SIGABRT, [] { CHECK(false) << "a bug of ours"; }},
                 {SIGILL, [] { __builtin_trap(); }},
                 {SIGFPE, [] { raise(SIGFPE); }},
                 {SIGSEGV, [] { kill(getpid(), SIGSEGV); }}};
  for (const auto& [number, work] : kDeaths) {
    const std::string name = FatalSignalName(number);
    SCOPED_TRACE(name);
    const int status = Run(work);
    // A sanitizer reports, and exits.
    if (!kSanitized) {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    }
    EXPECT_NE(status, 0);
    EXPECT_THAT(Death(), Optional(Expected(name)));
    EXPECT_THAT(Log(), HasSubstr(absl::StrCat("signal=", name,
                                              " job=a term=5 generation=2 step=12 micro_batch=3 "
                                              "instruction=backward operation=linear\n")));
  }
}

TEST_F(LastDeathTest, TheExecutorIsToldWhicheverThreadDies) {
  Run([] { Thread("worker", WriteWhereNobodyMay).Join(); });
  EXPECT_THAT(Death(), Optional(Expected("SIGSEGV")));
}

// Each call has memory on the stack that is written to.
int Deeper(volatile char* above, int levels) {
  volatile char here[4096];
  here[0] = above[0];
  return levels == 0 ? here[0] : Deeper(here, levels - 1) + here[0];
}

TEST_F(LastDeathTest, AStackThatRanOverIsTold) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have a stack for handlers of their own";
  Run([] {
    volatile char first[1] = {1};
    std::fprintf(stderr, "%d\n", Deeper(first, 1 << 20));
  });
  EXPECT_THAT(Death(), Optional(Expected("SIGSEGV")));
}

TEST_F(LastDeathTest, OtherEndsLeaveNothing) {
  EXPECT_EQ(WTERMSIG(Run([] { raise(SIGKILL); })), SIGKILL);
  EXPECT_EQ(Death(), std::nullopt);
  EXPECT_EQ(Run([] {}), 0);
  EXPECT_EQ(Death(), std::nullopt);
  EXPECT_EQ(FatalSignalName(SIGKILL), nullptr);
}

TEST_F(LastDeathTest, WithoutAFolderTheLogHasIt) {
  Run([] { std::abort(); }, /*with_folder=*/false);
  EXPECT_EQ(Death(), std::nullopt);
  EXPECT_THAT(Log(), HasSubstr("signal=SIGABRT job=a"));
}

TEST_F(LastDeathTest, WithoutWorkAtHandTheSignalAloneIsTold) {
  Run([] {
    EndWork();
    std::abort();
  });
  EXPECT_THAT(Death(), Optional(StageDeath{.signal = "SIGABRT"}));
  EXPECT_EQ(DeathText(*Death()), "SIGABRT with no work at hand");
}

TEST_F(LastDeathTest, TheNextProcessFindsItUntilItIsTold) {
  Run([] { std::abort(); });
  {
    const auto next = LastDeath::Open(folder_.path());
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_THAT((*next)->death(), Optional(Expected("SIGABRT")));
  }
  Run([] { raise(SIGKILL); });  // before it could tell
  const auto last = LastDeath::Open(folder_.path());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_THAT((*last)->death(), Optional(Expected("SIGABRT")));
  (*last)->Told();
  EXPECT_EQ((*last)->death(), std::nullopt);
  EXPECT_EQ(Death(), std::nullopt);
}

TEST_F(LastDeathTest, AFileOfSomethingElseIsNone) {
  for (const char* text :
       {"", "\n", "hello\n", "signal=SIGTERM\n", "signal=SIGSEGV", "signal=SIGSEGV job=a\n",
        "signal=SIGSEGV job=A term=1 generation=1 step=1 instruction=load\n",
        "signal=SIGSEGV job=a term=x generation=1 step=1 instruction=load\n",
        "signal=SIGSEGV job=a term=1 generation=1 step=-1 instruction=load\n",
        "signal=SIGSEGV job=a term=1 generation=1 step=1 micro_batch=m instruction=load\n",
        "signal=SIGSEGV job=a term=1 generation=1 step=1 instruction=\n",
        "signal=SIGSEGV job=a term=1 generation=1 step=1 instruction=\xff\xfe\n"}) {
    EXPECT_EQ(ParseDeath(text), std::nullopt) << text;
  }
  const auto load = ParseDeath("signal=SIGBUS job=a term=1 generation=2 step=3 instruction=load\n");
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(DeathText(*load), "SIGBUS at step 3, load");
  EXPECT_EQ(DeathText(Expected("SIGSEGV")), "SIGSEGV at step 12, micro-batch 3, backward (linear)");
}

// Seen in a review: the coordinator refused a stage with such a line, at each of its starts.
TEST_F(LastDeathTest, AnOperationThatWasOverwrittenIsLeftOut) {
  for (const std::string& operation :
       {std::string("\xff\xfe"), std::string(64, 'a'), std::string("a b"), std::string("a\nb"),
        std::string("Add")}) {
    const auto death = ParseDeath(absl::StrCat(
        "signal=SIGSEGV job=a term=1 generation=2 step=3 instruction=forward operation=", operation,
        "\n"));
    ASSERT_TRUE(death.has_value()) << operation;
    EXPECT_EQ(death->instruction, "forward");
    EXPECT_TRUE(death->operation.empty() || death->operation == "a") << death->operation;
  }
}

TEST_F(LastDeathTest, AFolderThatCannotBeWrittenIsNamed) {
  const absl::Status status = LastDeath::Open(folder_.File("none")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--state-dir: " + folder_.File("none")));
}

}  // namespace
}  // namespace stagecoach
