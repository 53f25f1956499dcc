// Completion: the client's answers, and the scripts in their shells.
#include "services/cli/completion.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/command_line.h"
#include "services/cli/testing/no_profile.h"
#include "stagecoach/v1/job.grpc.pb.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TwoJobs final : public v1::JobService::Service {
 public:
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse* response) override {
    for (const char* id : {"tiny-1", "tiny-2"}) response->add_jobs()->set_id(id);
    return grpc::Status::OK;
  }
};

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&jobs_);
    coordinator_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~CompletionTest() override { coordinator_->Shutdown(std::chrono::system_clock::now()); }

  int Run(std::vector<const char*> words) {
    words.insert(words.begin(), {"stagecoach", "--address", address_.c_str()});
    out_.str("");
    notes_.str("");
    return RunCommandLine(static_cast<int>(words.size()), words.data(), &console_, &stop_);
  }

  // The answer of the client for a line of these words, the last of which is to be completed.
  std::string Answer(std::vector<const char*> line) {
    line.insert(line.begin(), {"__complete", "--", "stagecoach"});
    EXPECT_EQ(Run(line), 0) << notes_.str();
    EXPECT_EQ(notes_.str(), "");
    return out_.str();
  }

  // What `shell` prints for the completion script followed by `questions`, in a home of its own;
  // nothing if this machine has no such shell. Its warnings (of a missing locale) do not count.
  std::optional<std::string> Ask(const std::string& shell, const std::string& options,
                                 const std::string& questions) {
    if (std::system(("command -v " + shell + " >/dev/null 2>&1").c_str()) != 0) return std::nullopt;
    EXPECT_EQ(Run({"completion", shell.c_str()}), 0);
    const TemporaryFolder home;
    home.Write("script", out_.str() + "\n" + questions);
    const std::string command =
        "env -u XDG_CONFIG_HOME -u XDG_DATA_HOME -u XDG_CACHE_HOME HOME=" + home.path() +
        " STAGECOACH_ADDRESS=" + address_ + " PATH=\"$(dirname " STAGECOACH_PROGRAM "):$PATH\" " +
        shell + options + " " + home.File("script") + " 2>" + home.File("errors");
    FILE* pipe = popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::string output;
    for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) output += static_cast<char>(c);
    const int code = pclose(pipe);
    EXPECT_EQ(code, 0) << FileText(home.File("errors"));
    return output;
  }

  const NoProfile no_profile_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  TwoJobs jobs_;
  std::unique_ptr<grpc::Server> coordinator_;
  std::string address_;
};

TEST_F(CompletionTest, AValueIsCompletedByItsKind) {
  const std::string jobs = "tiny-1\ntiny-2\n";
  for (const char* command : {"describe", "watch", "wait", "cancel", "resume", "trace", "logs"}) {
    EXPECT_EQ(Answer({command, ""}), jobs) << command;
  }
  EXPECT_EQ(Answer({"-o", "json", "checkpoints", "--timeout", "3", "verify", "ti"}), jobs);
  EXPECT_EQ(Answer({"checkpoints", "remove", ""}), jobs);
  EXPECT_THAT(Answer({"jobs", "prune", "--state", "f"}), HasSubstr("failed\t"));
  for (const char* command : {"generate", "export"}) {
    EXPECT_EQ(Answer({command, ""}), jobs + "PATH\n");
  }
  EXPECT_EQ(Answer({"classify", "--weights", ""}), jobs + "PATH\n");
  EXPECT_EQ(Answer({"classify", "a.png", "b.png", ""}), "PATH\n");
  EXPECT_EQ(Answer({"local", "--data-root", ""}), "PATH\n");
  EXPECT_THAT(Answer({"local", "--device", ""}),
              AllOf(StartsWith("cpu\n"), HasSubstr("reference")));
  EXPECT_EQ(Answer({"plan", "job.yaml", "--device", "x"}), Answer({"local", "--device", ""}));
  EXPECT_EQ(Answer({"local", ""}), "FILE\n");
  EXPECT_EQ(Answer({"trace", "tiny-1", "--file", ""}), "FILE\n");
  EXPECT_EQ(Answer({"list", "--token-file", ""}), "FILE\n");
  EXPECT_EQ(Answer({"resume", "tiny-1", "--state-dir", ""}), "DIR\n");
  EXPECT_EQ(Answer({"ui", ""}), "DIR\n");
  EXPECT_EQ(Answer({"logs", "--format", ""}),
            "text\ttext, or json: one object a line\njson\ttext, or json: one object a line\n");
  EXPECT_THAT(Answer({"trace", "-o", ""}), AllOf(HasSubstr("table\t"), HasSubstr("ndjson\t")));
  EXPECT_THAT(Answer({"export", "--names", ""}),
              AllOf(HasSubstr("torchvision\t"), HasSubstr("timm\t")));
}

// Symptom: --id, the name of a job to come, was completed with the ids of those that are.
TEST_F(CompletionTest, AValueOfNoKnownKindIsCompletedToNothing) {
  for (const char* command : {"local", "submit", "resume"}) {
    EXPECT_EQ(Answer({command, "--id", ""}), "") << command;
  }
  EXPECT_EQ(Answer({"list", "--address", ""}), "");
  EXPECT_EQ(Answer({"list", "--timeout", ""}), "");
  EXPECT_EQ(Answer({"local", "--stages", ""}), "");
  EXPECT_EQ(Answer({"translate", "--local-stages", ""}), "");
  EXPECT_EQ(Answer({"health", ""}), "");
  EXPECT_EQ(Answer({"describe", "tiny-1", ""}), "");
  EXPECT_EQ(Answer({"list", ""}), "");
  EXPECT_EQ(Answer({"checkpoints", "remove", "tiny-1", "3", ""}), "");
  EXPECT_EQ(Answer({"jobs", "prune", "--older-than", ""}), "");
}

TEST_F(CompletionTest, OptionsAreThoseOfTheCommandAndTheSharedOnesOnce) {
  for (const char* command : {"generate", "translate"}) {
    EXPECT_THAT(Answer({command, "--"}),
                AllOf(HasSubstr("--stages\twrite on"), HasSubstr("--local-stages\twrite on")));
  }
  const std::string options = Answer({"trace", "--"});
  EXPECT_THAT(options, AllOf(HasSubstr("--file\tChrome trace"), HasSubstr("--address\t"),
                             HasSubstr("--help\t"), Not(HasSubstr("--stages"))));
  const size_t at = options.find("\n--output\t");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(options.find("\n--output\t", at + 1), std::string::npos);
  EXPECT_THAT(options, HasSubstr("anything else is --file"));
  EXPECT_THAT(Answer({"-"}), AllOf(HasSubstr("--timeout\t"), Not(HasSubstr("--file"))));
}

// Symptom: a test failed where the shell warned of a locale, and fish wrote into the user's home.
TEST_F(CompletionTest, WarningsAreNoAnswersAndTheHomeIsItsOwn) {
  const char* const home = getenv("HOME");
  const std::optional<std::string> answer = Ask("bash", "", R"(
echo warning >&2
[ "$HOME" = ")" + std::string(home == nullptr ? "" : home) + R"(" ] || echo other
)");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(*answer, "other\n");
}

TEST_F(CompletionTest, Bash) {
  const std::optional<std::string> answer = Ask("bash", "", R"(
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stagecoach; echo "${COMPREPLY[*]}"; }
ask stagecoach che
ask stagecoach -o json local --thr
ask stagecoach list -o nd
ask stagecoach completion z
ask stagecoach checkpoints ver
)");
  ASSERT_TRUE(answer.has_value()) << "tools/setup installs bash's users' shell with the system";
  EXPECT_EQ(*answer, "checkpoints\n--threads-per-stage\nndjson\nzsh\nverify\n");
}

TEST_F(CompletionTest, BashAsksTheClientForJobsAndDevices) {
  const std::optional<std::string> answer = Ask("bash", "", R"(
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stagecoach; echo "${COMPREPLY[*]}"; }
ask stagecoach cancel ti
ask stagecoach describe tiny-2
ask stagecoach checkpoints verify tiny-1
ask stagecoach local --device cp
ask stagecoach submit --id ''
)");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(*answer, "tiny-1 tiny-2\ntiny-2\ntiny-1\ncpu\n\n");
}

// Symptom: a name with a blank was cut at it, and a folder got a blank in the place of its slash.
TEST_F(CompletionTest, BashTakesFilesWithBlanksWhole) {
  const std::optional<std::string> answer = Ask("bash", "", R"sh(
cd
touch 'my job.yaml'
mkdir mine
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stagecoach; printf '%s\n' "${COMPREPLY[@]}" | sort; }
ask stagecoach local my
ask stagecoach local mi
ask stagecoach ui m
)sh");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(*answer, "my job.yaml\nmine\nmine\n");
}

// Bash breaks words at colons.
TEST_F(CompletionTest, BashCompletesBehindAColon) {
  const std::optional<std::string> answer = Ask("bash", "", R"(
COMP_WORDBREAKS=' ><=;|&(:'
stagecoach() {
  case "$*" in
    *--device*) echo cpu; echo cuda:0; echo cuda:1; echo cuda:10 ;;
    *) command stagecoach "$@" ;;
  esac
}
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stagecoach; echo "${COMPREPLY[*]}"; }
ask stagecoach local --device cu
ask stagecoach local --device cuda :
ask stagecoach local --device cuda : 1
ask stagecoach --address 127.0.0.1 : 8001 che
)");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(*answer, "cuda:0 cuda:1 cuda:10\n0 1 10\n1 10\ncheckpoints\n");
}

// Symptom: "=" was taken for the option's value, and the value for the job file.
TEST_F(CompletionTest, BashCompletesBehindAnEqualsSign) {
  const std::optional<std::string> answer = Ask("bash", "", R"(
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stagecoach; echo "${COMPREPLY[*]}"; }
ask stagecoach list --output = nd
ask stagecoach describe --timeout = 3 tiny-2
)");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(*answer, "ndjson\ntiny-2\n");
}

TEST_F(CompletionTest, OfJobsIsSilentWithoutACoordinator) {
  address_ = "127.0.0.1:1";
  EXPECT_EQ(Answer({"describe", ""}), "");
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("__complete"))) << "hidden";
}

TEST_F(CompletionTest, Zsh) {
  // The line editor's functions, which a script does not have, print what they are given.
  const std::optional<std::string> answer = Ask("zsh", " -f", R"(
_describe() { local -a list; list=(${(P)2}); print -l -- ${(M)list:#${words[CURRENT]}*} }
_files() { print files $@ }
ask() { words=("$@"); CURRENT=$#; _stagecoach }
ask stagecoach che
ask stagecoach -o json local --thr
ask stagecoach list -o ''
ask stagecoach completion ''
ask stagecoach local ''
ask stagecoach ui ''
ask stagecoach cancel ''
ask stagecoach submit --id ''
)");
  if (!answer.has_value()) GTEST_SKIP() << "no zsh on this machine";
  EXPECT_EQ(*answer,
            "checkpoints:List, verify or remove checkpoints\n"
            "--threads-per-stage:default: the cores divided among the stages\n"
            "table:how results are printed\njson:how results are printed\nndjson:how results are "
            "printed\n"
            "bash:whose script\nzsh:whose script\nfish:whose script\nfiles\nfiles -/\n"
            "tiny-1\ntiny-2\n");
}

TEST_F(CompletionTest, Fish) {
  const std::optional<std::string> answer = Ask("fish", " --no-config", R"(
complete -C 'stagecoach che'
complete -C 'stagecoach -o json local --thr'
complete -C 'stagecoach list -o nd'
complete -C 'stagecoach completion z'
complete -C 'stagecoach cancel '
complete -C 'stagecoach submit --id '
mkdir ~/here
cd ~/here
touch job.yaml
mkdir runs
complete -C 'stagecoach local '
complete -C 'stagecoach ui '
)");
  if (!answer.has_value()) GTEST_SKIP() << "no fish on this machine";
  EXPECT_EQ(*answer,
            "checkpoints\tList, verify or remove checkpoints\n"
            "--threads-per-stage\tdefault: the cores divided among the stages\n"
            "ndjson\thow results are printed\nzsh\twhose script\n"
            "tiny-1\ntiny-2\njob.yaml\nruns/\nruns/\tDirectory\n");
}

}  // namespace
}  // namespace stagecoach
