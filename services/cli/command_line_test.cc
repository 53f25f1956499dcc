// The command line itself: help, mistakes, completion.
#include "services/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <vector>

namespace stagecoach {
namespace {

using testing::HasSubstr;

class CommandLineTest : public testing::Test {
 protected:
  int Run(std::vector<const char*> words) {
    words.insert(words.begin(), "stagecoach");
    out_.str("");
    notes_.str("");
    return RunCommandLine(static_cast<int>(words.size()), words.data(), &console_, &stop_);
  }
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
};

TEST_F(CommandLineTest, HelpIsDataAndNoError) {
  EXPECT_EQ(Run({"--help"}), 0);
  for (const char* command :
       {"local", "submit", "watch", "list", "describe", "cancel", "plan", "checkpoints", "export",
        "health", "version", "generate", "trace", "logs"}) {
    EXPECT_THAT(out_.str(), HasSubstr(command));
  }
}

TEST_F(CommandLineTest, MistakesGiveTwo) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"trian"}), 2);
  EXPECT_EQ(Run({"local", "--stages", "0", "job.yaml"}), 2);
  EXPECT_EQ(Run({"local", "--stages", "two", "job.yaml"}), 2);
  EXPECT_EQ(Run({"local", "--device", "tpu", "job.yaml"}), 2);
  EXPECT_EQ(Run({"local", "--device", "simulated:fast", "job.yaml"}), 2);
  EXPECT_EQ(Run({"local", "--device", "cuda:x", "job.yaml"}), 2);
  EXPECT_EQ(Run({"local", "--device", "cuda:0,tpu", "job.yaml"}), 2);
  EXPECT_EQ(Run({"local", "--device", "cuda:0,", "job.yaml"}), 2);
  EXPECT_EQ(Run({"plan", "--device", "cpu,tpu", "job.yaml"}), 2);
  EXPECT_EQ(Run({"list", "-o", "xml"}), 2);
  EXPECT_EQ(Run({"describe"}), 2);
  EXPECT_EQ(Run({"trace"}), 2);
  EXPECT_EQ(Run({"trace", "job", "--steps", "-1"}), 2);
  EXPECT_EQ(Run({"logs", "job", "--stage", "-1"}), 2);
  EXPECT_EQ(Run({"logs", "job", "--tail", "0"}), 2);
  EXPECT_EQ(Run({"logs", "job", "--format", "xml"}), 2);
  EXPECT_EQ(out_.str(), "");
  EXPECT_NE(notes_.str(), "");
}

TEST_F(CommandLineTest, SharedOptionsMayStandBehindTheCommand) {
  EXPECT_EQ(Run({"version", "-o", "json"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("{\"version\":"));
  EXPECT_EQ(Run({"-o", "json", "version"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("{\"version\":"));
}

TEST_F(CommandLineTest, NoCoordinatorGivesFourAndNamesTheAddress) {
  EXPECT_EQ(Run({"list", "--address", "127.0.0.1:1"}), 4);
  EXPECT_THAT(notes_.str(), HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(Run({"health", "127.0.0.1:1"}), 4);
}

TEST_F(CommandLineTest, TheOutputOfATraceIsAFile) {
  // Neither is a format; the coordinator that is not there ends both.
  EXPECT_EQ(Run({"trace", "job", "-o", "out.json", "--address", "127.0.0.1:1"}), 4);
  EXPECT_EQ(Run({"trace", "job", "-o", "-", "--address", "127.0.0.1:1"}), 4);
  EXPECT_EQ(Run({"logs", "job", "-o", "ndjson", "--address", "127.0.0.1:1"}), 4);
  ASSERT_EQ(Run({"trace", "--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("perfetto"));
}

TEST_F(CommandLineTest, BashTakesTheCompletion) {
  ASSERT_EQ(Run({"completion", "bash"}), 0);
  const std::string script =
      out_.str() +
      "\nCOMP_WORDS=(stagecoach che); COMP_CWORD=1; _stagecoach; echo \"${COMPREPLY[*]}\"\n"
      "COMP_WORDS=(stagecoach -o json local --thr); COMP_CWORD=4; _stagecoach; "
      "echo \"${COMPREPLY[*]}\"\n";
  const std::string path =
      testing::TempDir() + "/command_line_test_" + std::to_string(getpid()) + ".sh";
  FILE* file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs(script.c_str(), file);
  fclose(file);
  FILE* pipe = popen(("bash " + path + " 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  std::remove(path.c_str());
  EXPECT_EQ(output, "checkpoints\n--threads-per-stage\n");
}

}  // namespace
}  // namespace stagecoach
