// The command line itself: help, mistakes.
#include "services/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/testing/no_profile.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;
using testing::Not;

class CommandLineTest : public testing::Test {
 protected:
  int Run(std::vector<const char*> words) {
    words.insert(words.begin(), "stagecoach");
    out_.str("");
    notes_.str("");
    return RunCommandLine(static_cast<int>(words.size()), words.data(), &console_, &stop_);
  }
  const NoProfile no_profile_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
};

TEST_F(CommandLineTest, HelpIsDataAndNoError) {
  EXPECT_EQ(Run({"--help"}), 0);
  for (const char* command :
       {"local",       "submit",     "watch",  "list",      "describe", "cancel",   "plan",
        "checkpoints", "export",     "health", "version",   "generate", "classify", "segment",
        "translate",   "perplexity", "score",  "tokenizer", "trace",    "logs",     "resume",
        "ui",          "certs",      "config", "jobs",      "records"}) {
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
  EXPECT_EQ(Run({"generate", "weights", "--prompt", "a", "--seed", "-1"}), 2);
  EXPECT_EQ(Run({"resume", "job", "--stages", "0"}), 2);
  EXPECT_EQ(Run({"resume", "job", "--steps", "0"}), 2);
  EXPECT_EQ(Run({"list", "-o", "xml"}), 2);
  EXPECT_EQ(Run({"describe"}), 2);
  EXPECT_EQ(Run({"trace"}), 2);
  EXPECT_EQ(Run({"trace", "job", "--steps", "-1"}), 2);
  EXPECT_EQ(Run({"records", "job"}), 2);
  EXPECT_EQ(Run({"records", "job", "--to", ""}), 2);
  EXPECT_EQ(Run({"logs", "job", "--stage", "-1"}), 2);
  EXPECT_EQ(Run({"logs", "job", "--tail", "0"}), 2);
  EXPECT_EQ(Run({"logs", "job", "--format", "xml"}), 2);
  for (const char* command : {"generate", "translate"}) {
    EXPECT_EQ(Run({command, "job", "--stages", "0"}), 2);
    EXPECT_EQ(Run({command, "job", "--batch", "0"}), 2);
    EXPECT_THAT(notes_.str(), HasSubstr("--batch: Value 0 not in range"));
    EXPECT_EQ(Run({command, "job", "--local-stages", "many"}), 2);
    EXPECT_EQ(Run({command, "job", "--stages", "2", "--local-stages", "2"}), 2);
    EXPECT_EQ(Run({command, "job", "--stages", "2", "--threads", "2"}), 2);
    EXPECT_THAT(notes_.str(), HasSubstr("--threads excludes --stages"));
  }
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

TEST_F(CommandLineTest, AFolderWithoutARunIsSaidToBeNone) {
  EXPECT_EQ(Run({"ui", "/no/such/folder"}), 3);
  EXPECT_THAT(notes_.str(),
              HasSubstr("/no/such/folder: no run of `stagecoach local` is kept here"));
  EXPECT_EQ(Run({"ui", ""}), 2) << "a shell variable that was not set";
  EXPECT_EQ(Run({"resume", "job", "--state-dir", "/no/such/folder"}), 3);
}

// Symptom: `trace -o json` wrote a file named json, where every other command prints JSON.
TEST_F(CommandLineTest, TheOutputOfATraceIsAFormatAndAnyOtherWordIsStillTheFile) {
  // The coordinator that is not there ends all of them.
  EXPECT_EQ(Run({"trace", "job", "-o", "out.json", "--address", "127.0.0.1:1"}), 4);
  EXPECT_EQ(Run({"trace", "job", "-o", "-", "--address", "127.0.0.1:1"}), 4);
  EXPECT_EQ(Run({"trace", "job", "-o", "json", "--file", "out.json", "--address", "127.0.0.1:1"}),
            4);
  EXPECT_EQ(Run({"logs", "job", "-o", "ndjson", "--address", "127.0.0.1:1"}), 4);
  ASSERT_EQ(Run({"trace", "--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("perfetto"));
  EXPECT_THAT(out_.str(), HasSubstr("anything else is --file"));
}

// Symptom: -o was shown as "ENUM:value in {json->1,ndjson->2,table->0} OR {1,2,0}".
TEST_F(CommandLineTest, HelpNamesFormatsAsTheyAreTyped) {
  for (const char* command : {"list", "trace"}) {
    ASSERT_EQ(Run({"--help"}), 0);
    EXPECT_THAT(out_.str(), HasSubstr("{table,json,ndjson}"));
    ASSERT_EQ(Run({command, "--help"}), 0);
    EXPECT_THAT(out_.str(), Not(HasSubstr("ENUM")));
    EXPECT_THAT(out_.str(), Not(HasSubstr("->")));
  }
}

// Symptom: `stagecoach train x` was answered with "A subcommand is required".
TEST_F(CommandLineTest, AWordThatIsNoCommandIsNamedWithTheNearest) {
  EXPECT_EQ(Run({"train", "job.yaml"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("\"train\" is no command; did you mean \"local\"?"));
  EXPECT_EQ(Run({"-o", "json", "descirbe", "job"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("\"descirbe\" is no command; did you mean \"describe\"?"));
  EXPECT_EQ(Run({"checkpoints", "lst", "job"}), 2);
  EXPECT_THAT(notes_.str(),
              HasSubstr("\"lst\" is no command of checkpoints; did you mean \"list\""));
  EXPECT_EQ(Run({"frobnicate"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("known here: local, submit"));
  EXPECT_EQ(Run({}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("a command is missing; known here: local"));
  EXPECT_EQ(Run({"checkpoints"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("a command is missing; known here: list, verify"));
}

TEST_F(CommandLineTest, AnOptionThatNobodyKnowsIsNamedWithTheNearest) {
  EXPECT_EQ(Run({"local", "job.yaml", "--stage=2"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--stage: no such option; did you mean \"--stages\"?"));
  EXPECT_EQ(Run({"list", "--adress", "host:1"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--adress: no such option; did you mean \"--address\"?"));
  EXPECT_EQ(Run({"describe", "one", "two"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("two"));
}

// Symptom: both ended, after ten seconds, in the resolver's words.
TEST_F(CommandLineTest, AnAddressThatCannotBeOneIsRefusedAtOnce) {
  EXPECT_EQ(Run({"list", "--address", "http://127.0.0.1:8000"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--address http://127.0.0.1:8000: a gRPC address has no"));
  EXPECT_EQ(Run({"list", "--address", "coordinator"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("no port; want coordinator:8001"));
  EXPECT_EQ(Run({"health", "127.0.0.1"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("no port"));
}

TEST_F(CommandLineTest, RemovalIsNeverAGuess) {
  EXPECT_EQ(Run({"checkpoints", "remove", "job"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("step is required"));
  EXPECT_EQ(Run({"checkpoints", "remove", "job", "newest"}), 2);
  EXPECT_EQ(Run({"jobs"}), 2);
  for (const char* age : {"30", "d", "-1d", "nand", "30 days", ""}) {
    EXPECT_EQ(Run({"jobs", "prune", "--yes", "--older-than", age}), 2) << age;
    EXPECT_THAT(notes_.str(), HasSubstr("--older-than: want an age as 30d")) << age;
  }
  EXPECT_EQ(Run({"jobs", "prune", "--yes", "--state", "failed,running"}), 2);
  EXPECT_EQ(Run({"jobs", "prune", "--yes", "--keep", "-1"}), 2);
  // No coordinator is asked.
  EXPECT_EQ(Run({"jobs", "prune", "--older-than", "1.5h", "--state", "failed,cancelled"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("add --yes, or --dry-run"));
}

TEST_F(CommandLineTest, AJobComesFromStandardInputToo) {
  std::istringstream job("name: piped\nmodle: {}\n");
  std::streambuf* const own = std::cin.rdbuf(job.rdbuf());
  EXPECT_EQ(Run({"validate", "-"}), 2);
  std::cin.rdbuf(own);
  EXPECT_THAT(notes_.str(), HasSubstr("standard input:2:1: modle: unknown field"));
}

// Symptom: `validate` said "ok" and `plan` nothing about a job whose data file was not there.
TEST_F(CommandLineTest, AJobWhoseDataIsNotHereIsNotOk) {
  const std::string text = FileText(STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml");
  const TemporaryFolder folder;
  const std::string path =
      folder.Write("job.yaml", absl::StrReplaceAll(text, {{"../LICENSE", "/no/such.txt"}}));
  EXPECT_EQ(Run({"validate", path.c_str()}), 2);
  EXPECT_THAT(notes_.str(),
              HasSubstr(path + ":8:10: data.text.path: /no/such.txt: on this machine: "
                               "No such file or directory"));
  EXPECT_THAT(notes_.str(), HasSubstr("--data-elsewhere"));
  EXPECT_EQ(Run({"validate", "--data-elsewhere", path.c_str()}), 0);
  EXPECT_EQ(out_.str(), path + ": ok\n");
  EXPECT_EQ(Run({"plan", path.c_str()}), 0) << "what it costs does not depend on the data";
  EXPECT_THAT(notes_.str(), HasSubstr("note: "));
  EXPECT_THAT(notes_.str(), HasSubstr("/no/such.txt"));
  EXPECT_EQ(Run({"local", "--state-dir", (path + ".state").c_str(), path.c_str()}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("/no/such.txt: on this machine"));
  EXPECT_NE(access((path + ".state").c_str(), F_OK), 0) << "nothing was started";
  // A folder in its place.
  folder.Write("job.yaml", absl::StrReplaceAll(text, {{"../LICENSE", "/"}}));
  EXPECT_EQ(Run({"validate", path.c_str()}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("a folder, not a file; name the file in it"));
  // A file in a folder's place, and a folder.
  const auto on_folder = [&](const std::string& data) {
    folder.Write("job.yaml",
                 "name: folders\npipeline: {stages: 1}\nmodel: {mlp: {image: [8, 8, 3], hidden: 4, "
                 "classes: 2}}\ndata: {image_folder: {train: " +
                     data +
                     "}}\ntraining: {steps: 1, batch_size: 1, micro_batches: 1, learning_rate: "
                     "{constant: {peak: 0.1}}}\n");
    return Run({"validate", path.c_str()});
  };
  EXPECT_EQ(on_folder(path), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("data.image_folder.train: /"));
  EXPECT_THAT(notes_.str(), HasSubstr("job.yaml"));
  EXPECT_THAT(notes_.str(), HasSubstr("text, not a folder"));
  std::filesystem::copy_file(STAGECOACH_SOURCE_DIR "/docs/images/dashboard-dark.png",
                             folder.MakeFolder("data/a") + "/1.png");
  EXPECT_EQ(on_folder(folder.File("data")), 0) << notes_.str();
  EXPECT_EQ(Run({"validate", STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml"}), 0);
}

TEST_F(CommandLineTest, APlanIsMadeForTheMemoryThatStagesHave) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("job.yaml",
                                        "name: plan\npipeline: {stages: 1}\nmodel: {mlp: {image: "
                                        "[8, 8, 3], hidden: 64, classes: 2}}\n"
                                        "data: {image_folder: {train: pictures}}\ntraining: "
                                        "{steps: 1, batch_size: 1, micro_batches: 1, "
                                        "learning_rate: {constant: {peak: 0.1}}}\n");
  const auto planned = [&](const char* memory) {
    notes_.str("");
    return Run({"plan", path.c_str(), "--memory-per-stage", memory});
  };
  EXPECT_EQ(planned("1MiB"), 0) << notes_.str();
  EXPECT_EQ(planned("190 kB"), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("a stage has 0.2 MiB (--memory-per-stage, or "));
  EXPECT_EQ(planned("190000"), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("a stage has 0.2 MiB (--memory-per-stage, or "));
  EXPECT_EQ(planned("0.001GB"), 0) << notes_.str();
  for (const char* wrong : {"0", "-1MiB", "many", "1 mile", "99999999999GiB"}) {
    EXPECT_EQ(planned(wrong), 2) << wrong;
    EXPECT_THAT(notes_.str(), HasSubstr("--memory-per-stage: want a size as 512MiB, 1.5GiB or "
                                        "8GB, not \"" +
                                        std::string(wrong) + "\""));
  }
  EXPECT_EQ(Run({"local", "--memory-per-stage", "0", "job.yaml"}), 2);
  // It was left unsaid that a coordinator knows nothing of it.
  EXPECT_EQ(Run({"plan", path.c_str(), "--memory-per-stage", "1MiB", "--server"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--memory-per-stage: a coordinator plans for the memory that "
                                      "its stages have"));
}

TEST_F(CommandLineTest, APlanComputesWithTheRateThatIsGiven) {
  const std::string path = STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml";
  EXPECT_EQ(Run({"plan", path.c_str()}), 0) << notes_.str();
  EXPECT_THAT(out_.str(), HasSubstr(" forecast at an assumed 150 GFLOP/s a stage\n"));
  EXPECT_EQ(Run({"plan", path.c_str(), "--gflops", "40"}), 0) << notes_.str();
  EXPECT_THAT(out_.str(), HasSubstr(" forecast at 40 GFLOP/s a stage, as given\n"));
  for (const char* rate : {"0", "nan", "-nan", "inf"}) {
    EXPECT_EQ(Run({"plan", path.c_str(), "--gflops", rate}), 2) << rate;
  }
  EXPECT_EQ(Run({"plan", path.c_str(), "--threads-per-stage", "8"}), 0) << notes_.str();
  EXPECT_EQ(Run({"plan", path.c_str(), "--threads-per-stage", "8", "--server"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--threads-per-stage: a coordinator plans for the threads"));
  EXPECT_EQ(Run({"plan", path.c_str(), "--gflops", "40", "--server"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--gflops: a coordinator plans by a rate of its own"));
}

}  // namespace
}  // namespace stagecoach
