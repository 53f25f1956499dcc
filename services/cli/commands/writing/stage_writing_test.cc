// `translate` and `generate` with --stages: the job that they submit, and what they print of its
// history.
#include "services/cli/commands/writing/stage_writing.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/files/file_handle.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "network/zoo/gpt.h"
#include "network/zoo/transformer.h"
#include "plan/data/parallel_text.h"
#include "plan/data/text.h"
#include "services/cli/testing/fake_job_client.h"
#include "services/cli/testing/toy_adapters.h"
#include "services/cli/trained/writing_job.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

JobSpec PairJob() {
  JobSpec spec;
  spec.name = "pairs";
  spec.network = TransformerSpec{.vocabulary = 100,
                                 .source_context = 12,
                                 .target_context = 8,
                                 .width = 16,
                                 .heads = 2,
                                 .encoder_layers = 1,
                                 .decoder_layers = 2};
  spec.data = ParallelTextData{
      .tokenizer = "/pieces.model", .sources = {"/a"}, .targets = {"/b"}, .tags = {"<2de>"}};
  spec.training.steps = 10;
  spec.training.batch_size = 8;
  spec.training.micro_batches = 4;
  return spec;
}

JobSpec TextJob() {
  JobSpec spec = PairJob();
  spec.network = GptSpec{.layers = 2, .width = 8, .heads = 2, .context = 16, .vocabulary = 256};
  spec.data = TextData{.path = "/text"};
  return spec;
}

class StageWritingTest : public testing::Test {
 protected:
  StageWritingTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&client_);
    };
    Trained(PairJob());
  }
  void Trained(const JobSpec& spec) {
    client_.job.set_id("trained");
    *client_.job.mutable_spec() = ToProto(spec);
  }
  v1::WatchJobResponse& Record() {
    v1::WatchJobResponse& record = client_.records.emplace_back();
    record.set_number(client_.records.size());
    return record;
  }
  void Waits(const std::string& why) {
    v1::StateRecord& state = *Record().mutable_state();
    state.set_detail("submitted");
    state.set_message(why);
  }
  void Writes(const std::vector<WrittenPiece>& pieces) {
    v1::WrittenRecord& written = *Record().mutable_written();
    for (const WrittenPiece& piece : pieces) *written.add_texts() = ToProto(piece);
  }
  void Ends(v1::JobState state, const std::string& message = "") {
    v1::FinishedRecord& finished = *Record().mutable_finished();
    finished.set_state(state);
    finished.set_message(message);
  }
  int Translate(const std::string& input, TranslateOptions options = {}) {
    out_.str("");
    notes_.str("");
    options.weights.source = source_;
    options.tag = options.tag.empty() ? "<2de>" : options.tag;
    options.stages = options.stages.given() ? options.stages : WritingStages{.cluster = 2};
    const FileHandle file(open(folder_.Write("input", input).c_str(), O_RDONLY | O_CLOEXEC));
    context_.input = file.get();
    return RunTranslate(options, context_);
  }
  int Generate(GenerateOptions options) {
    out_.str("");
    notes_.str("");
    options.weights.source = source_;
    options.stages = options.stages.given() ? options.stages : WritingStages{.cluster = 2};
    return RunGenerate(options, context_);
  }

  const TemporaryFolder folder_;
  std::string source_ = "trained";
  FakeJobClient client_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  CommandContext context_;
};

TEST_F(StageWritingTest, AJobTranslatesTheSentencesWithWords) {
  Writes({{.line = 1, .text = "Hund", .done = true}, {.line = 0, .text = "Ha"}});
  Writes({{.line = 0, .offset = 2, .text = "us", .done = true}});
  Ends(v1::JOB_STATE_SUCCEEDED);
  TranslateOptions options;
  options.weights.step = 7;
  options.beam = 3;
  ASSERT_EQ(Translate("\nhouse\n \ndog\n\n", options), 0) << notes_.str();
  EXPECT_EQ(out_.str(), "\nHaus\n\nHund\n\n");
  EXPECT_EQ(client_.submits, 1);
  EXPECT_THAT(client_.job.id(), StartsWith("translate-trained-"));
  const JobSpec job = FromProto(client_.job.spec()).value();
  EXPECT_EQ(job.name, "translate-trained");
  EXPECT_EQ(job.network, PairJob().network);
  EXPECT_EQ(job.resume, (ResumeSpec{.job = "trained", .step = 7, .fresh_optimizer = true}));
  EXPECT_EQ(job.pipeline.stages, 2);
  EXPECT_EQ(job.training.batch_size, 2);
  EXPECT_EQ(job.training.micro_batches, 1);
  ASSERT_TRUE(job.write.has_value());
  EXPECT_THAT(job.write->lines, ElementsAre("house", "dog"));
  EXPECT_EQ(job.write->tag, "<2de>");
  EXPECT_EQ(job.write->translate, (TranslateSpec{.beam = 3}));
  EXPECT_FALSE(job.write->generate.has_value());
  EXPECT_THAT(client_.cancelled, IsEmpty());
}

TEST_F(StageWritingTest, ProgramsGetTheObjectsThatTheyGetWithoutStages) {
  Writes({{.text = "Haus", .done = true, .tokens = 3, .score = -0.5, .ended = true},
          {.line = 1, .text = "Hund", .done = true, .tokens = 8, .score = -2}});
  Ends(v1::JOB_STATE_SUCCEEDED);
  context_.output = OutputFormat::kNdjson;
  ASSERT_EQ(Translate("house\n\ndog\n"), 0);
  EXPECT_EQ(out_.str(),
            "{\"source\":\"house\",\"text\":\"Haus\",\"tokens\":3,\"score\":-0.5}\n"
            "{\"source\":\"\",\"text\":\"\",\"tokens\":0,\"score\":0.0}\n"
            "{\"source\":\"dog\",\"text\":\"Hund\",\"tokens\":8,\"score\":-2.0,"
            "\"cut_off\":true}\n");
  client_.job.set_id("trained");
  *client_.job.mutable_spec() = ToProto(PairJob());
  context_.output = OutputFormat::kJson;
  ASSERT_EQ(Translate("house\n\ndog\n"), 0);
  EXPECT_EQ(Json::parse(out_.str())["translations"].size(), 3u);
}

TEST_F(StageWritingTest, WhatTheJobWaitsForIsTold) {
  Waits("waits for 2 stages, 0 are ready");
  Waits("waits for 2 stages, 1 is ready");
  Writes({{.text = "Haus", .done = true}});
  Ends(v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(Translate("house\n"), 0);
  EXPECT_EQ(out_.str(), "Haus\n");
  EXPECT_EQ(notes_.str(), "job " + client_.job.id() +
                              "\njob is submitted: waits for 2 stages, 0 are ready\n"
                              "job is submitted: waits for 2 stages, 1 is ready\n");
}

// A mini-batch begins anew after a loss of stages, and its pieces come again.
TEST_F(StageWritingTest, NothingIsPrintedTwice) {
  Writes({{.text = "Haus", .done = true}, {.line = 1, .text = "Hu"}});
  Record().mutable_recovery()->set_message("stage-1 lost");
  Writes({{.text = "Haus", .done = true}, {.line = 1, .text = "Hund", .done = true}});
  Ends(v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(Translate("house\ndog\n"), 0);
  EXPECT_EQ(out_.str(), "Haus\nHund\n");
  EXPECT_THAT(notes_.str(), HasSubstr("recovery: stage-1 lost\n"));
}

TEST_F(StageWritingTest, AJobThatFailsSaysOfWhichLine) {
  Writes({{.text = "Haus", .done = true}});
  Ends(v1::JOB_STATE_FAILED, "write.lines[1]: has 70 tokens");
  EXPECT_EQ(Translate("house\n\ndog\n"), 1);
  EXPECT_EQ(out_.str(), "Haus\n") << "what is known";
  EXPECT_THAT(notes_.str(),
              HasSubstr("stagecoach: job " + client_.job.id() + ": line 3: has 70 tokens\n"));
  client_.records.clear();
  Ends(v1::JOB_STATE_CANCELLED);
  Trained(PairJob());
  EXPECT_EQ(Translate("house\n"), 5);
  EXPECT_THAT(notes_.str(), HasSubstr(": CANCELLED\n"));
}

TEST_F(StageWritingTest, AJobThatIsRefusedSaysOfWhichLine) {
  client_.submit_refused = absl::InvalidArgumentError("write.lines[0]: is strange");
  EXPECT_EQ(Translate("\nhouse\n"), 2);
  EXPECT_EQ(notes_.str(), "stagecoach: line 2: is strange\n");
  EXPECT_THAT(client_.cancelled, IsEmpty()) << "there is nothing to cancel";
}

TEST_F(StageWritingTest, AServersRemedyNamesOptions) {
  client_.submit_refused = absl::ResourceExhaustedError("use a smaller training.batch_size");
  EXPECT_EQ(Translate("house\n"), 1);
  EXPECT_EQ(notes_.str(), "stagecoach: use a smaller --batch\n");
  client_.submit_refused = absl::InvalidArgumentError("pipeline.stages: 2; at most 1");
  EXPECT_EQ(Translate("house\n"), 2);
  EXPECT_EQ(notes_.str(), "stagecoach: --stages: 2; at most 1\n");
  client_.submit_refused = absl::OkStatus();
  Trained(TextJob());
  Waits("a stage lacks memory: use a smaller write.generate.tokens");
  Record().mutable_recovery()->set_message("no memory; give a smaller training.batch_size");
  Ends(v1::JOB_STATE_FAILED, "write.generate.stops[1]: \"ab\" is not one of the 256 bytes");
  EXPECT_EQ(Generate({.stops = {"a", "ab"}}), 1);
  EXPECT_EQ(notes_.str(), "job " + client_.job.id() +
                              // 17 rows of 8 keys and 8 values in each of 2 layers
                              "\nkeys and values: at most 2.1 KiB on all stages together\n"
                              "job is submitted: a stage lacks memory: use a smaller --tokens\n"
                              "recovery: no memory; give a smaller --batch\n"
                              "stagecoach: job " +
                              client_.job.id() + ": --stop: \"ab\" is not one of the 256 bytes\n");
}

TEST_F(StageWritingTest, ASuccessWithoutAllTextsIsNone) {
  Writes({{.text = "Haus", .done = true}, {.line = 1, .text = "Hu"}});
  Ends(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Translate("house\ndog\n"), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("the texts of the first 1 of 2 lines only"));
}

TEST_F(StageWritingTest, CtrlCCancelsTheJob) {
  Writes({{.text = "Haus", .done = true}});
  client_.on_watch = [this] { stop_.Request(absl::CancelledError("interrupted")); };
  client_.watches = {{1, absl::CancelledError("client")}};
  EXPECT_EQ(Translate("house\ndog\n"), 130);
  EXPECT_EQ(out_.str(), "Haus\n");
  EXPECT_THAT(client_.cancelled, ElementsAre(client_.job.id()));
  EXPECT_THAT(notes_.str(), Not(HasSubstr("may go on")));
}

TEST_F(StageWritingTest, AJobThatCannotBeCancelledIsNamed) {
  client_.on_watch = [this] {
    stop_.Request(absl::CancelledError("interrupted"));
    client_.reachable = absl::UnavailableError("refused");
  };
  client_.watches = {{0, absl::CancelledError("client")}};
  EXPECT_EQ(Translate("house\n"), 130);
  EXPECT_THAT(notes_.str(),
              HasSubstr("job " + client_.job.id() +
                        " may go on (refused); to end it:  stagecoach cancel " + client_.job.id()));
}

// Seen: Ctrl-C while the answer was awaited, and the job held the stages for hours.
TEST_F(StageWritingTest, AJobWhoseAnswerIsLostIsCancelled) {
  for (const absl::Status& lost : {absl::UnavailableError("socket closed"),
                                   absl::DeadlineExceededError("no answer for 10 s")}) {
    client_.cancelled.clear();
    client_.job.set_id("trained");
    *client_.job.mutable_spec() = ToProto(PairJob());
    client_.submit_answer_lost = lost;
    const bool stops = absl::IsUnavailable(lost);  // else it is tried again
    client_.on_submit = [this, stops] {
      if (stops) stop_.Request(absl::CancelledError("interrupted"));
    };
    StopSignal unstopped;
    context_.stop = stops ? &stop_ : &unstopped;
    EXPECT_EQ(Translate("house\n"), stops ? 130 : 4) << lost;
    EXPECT_THAT(client_.job.id(), StartsWith("translate-trained-"));
    EXPECT_THAT(client_.cancelled, ElementsAre(client_.job.id()));
    EXPECT_THAT(notes_.str(), Not(HasSubstr("may go on")));
  }
}

TEST_F(StageWritingTest, AJobThatMayHaveBeenTakenAndCannotBeCancelledIsNamed) {
  client_.submit_answer_lost = absl::UnavailableError("socket closed");
  client_.on_submit = [this] {
    stop_.Request(absl::CancelledError("interrupted"));
    client_.reachable = absl::UnavailableError("refused");
  };
  EXPECT_EQ(Translate("house\n"), 130);
  EXPECT_THAT(notes_.str(),
              HasSubstr("job " + client_.job.id() +
                        " may go on (refused); to end it:  stagecoach cancel " + client_.job.id()));
}

TEST_F(StageWritingTest, TheUserSaysHowManyPromptsAreContinuedTogether) {
  const std::string prompts = folder_.Write("prompts", "a\nb\nc\n");
  const auto groups = [&](int64_t batch) {
    Trained(TextJob());
    client_.records.clear();
    Ends(v1::JOB_STATE_CANCELLED);
    EXPECT_EQ(Generate({.prompts = prompts, .batch = batch}), 5);
    const v1::Training& training = client_.job.spec().training();
    return std::pair<int64_t, int64_t>(training.batch_size(), training.micro_batches());
  };
  EXPECT_EQ(groups(2), std::pair(int64_t{4}, int64_t{2})) << "a group for each stage";
  EXPECT_EQ(groups(64), std::pair(int64_t{3}, int64_t{1}));
}

// The number of stages changes how many groups are written at once, and not the groups.
TEST_F(StageWritingTest, GroupsAreOfOneSizeForEveryNumberOfStages) {
  std::string sentences;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&sentences, "dog ", i, "\n");
  for (const int64_t stages : {1, 2, 3, 4, 8, 13}) {
    Trained(PairJob());
    client_.records.clear();
    Ends(v1::JOB_STATE_CANCELLED);
    EXPECT_EQ(Translate(sentences, {.stages = {.cluster = stages}}), 5);
    const v1::Training& training = client_.job.spec().training();
    const int64_t groups = std::min<int64_t>(stages, 8);  // of 13, an eighth of the lines
    EXPECT_EQ(training.micro_batches(), groups);
    EXPECT_EQ(training.batch_size(), 13 * groups);
  }
}

TEST_F(StageWritingTest, WithoutAWordThereIsNoJob) {
  for (const char* input : {"", "\n", " \n\n"}) {
    EXPECT_EQ(Translate(input), 0) << notes_.str();
    EXPECT_EQ(out_.str(), std::string(std::count(input, input + strlen(input), '\n'), '\n'));
  }
  EXPECT_EQ(client_.submits, 0);
  context_.output = OutputFormat::kJson;
  EXPECT_EQ(Generate({.prompts = folder_.Write("none", "")}), 0);
  EXPECT_EQ(Json::parse(out_.str())["texts"].size(), 0u);
  EXPECT_EQ(client_.submits, 0);
}

TEST_F(StageWritingTest, LinesThatAJobDoesNotTakeAreRefusedHere) {
  EXPECT_EQ(Translate(std::string(kMostWriteBytes / 2, 'a') + "\n" +
                      std::string(kMostWriteBytes / 2 - 7, 'b') + "\n"),
            2);
  EXPECT_THAT(notes_.str(),
              StartsWith(absl::StrCat("stagecoach: standard input: has ", kMostWriteBytes + 1,
                                      " bytes; stages take at most ", kMostWriteBytes)));
  Trained(TextJob());
  const std::string large =
      folder_.Write("large", std::string(kMostWriteBytes - 9, 'a') + "\nbc\n");
  EXPECT_EQ(Generate({.prompts = large}), 2);
  EXPECT_THAT(notes_.str(), StartsWith(absl::StrCat("stagecoach: ", large, ": has ",
                                                    kMostWriteBytes + 1, " bytes")));
  EXPECT_EQ(Generate({.prompts = folder_.Write("prompts", "a\n\n")}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("prompt 2: --prompt: needs at least one character"));
  EXPECT_EQ(Generate({.prompt = ""}), 2);
  EXPECT_EQ(notes_.str(), "stagecoach: --prompt: needs at least one character\n");
  EXPECT_EQ(Generate({.prompt = "\xff"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--prompt: is no UTF-8 text, and stages get no other"));
  EXPECT_EQ(Generate({.stops = {"\xff"}}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--stop: \\xff; is no UTF-8 text"));
  EXPECT_EQ(client_.submits, 0);
}

TEST_F(StageWritingTest, AJobThatCannotWriteIsRefusedHere) {
  EXPECT_EQ(Translate("house\n", {.tag = "<2fr>"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--tag: <2fr>; the job was trained with <2de>"));
  EXPECT_EQ(Generate({}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("`stagecoach translate` uses these"));
  Trained(TextJob());
  EXPECT_EQ(Translate("house\n"), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("`stagecoach generate` writes text"));
  client_.job.mutable_spec()->mutable_write()->mutable_generate();
  EXPECT_EQ(Generate({}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("job trained: writes texts and has no weights"));
  EXPECT_EQ(client_.submits, 0);
}

TEST_F(StageWritingTest, SourcesThatStagesDoNotTakeSayWhatToDoInstead) {
  CheckpointStore store(PosixFileSystem(), folder_.File("checkpoints"));
  source_ = SaveToy(*PosixFileSystem(), store, "toy", 1, 50).value().folder;
  EXPECT_EQ(Generate({.stages = {.cluster = 2}}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("a cluster's stages take exported weights"));
  EXPECT_EQ(Generate({.stages = {.local = 2}}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("a checkpoint has numbers only; name the job"));
  source_ = "nobody";
  EXPECT_EQ(Generate({}), 3);
  EXPECT_THAT(notes_.str(), HasSubstr("nobody is no file or folder; as a job's id"));
  source_ = "/no/such";
  EXPECT_EQ(Generate({}), 3);
  EXPECT_EQ(Generate({.stages = {.local = 2}}), 3);
}

// Symptom: stages of a cluster were to read a temporary folder of the client's machine.
TEST_F(StageWritingTest, AdaptersAreNoWeightsForAClustersStages) {
  constexpr char kRefusal[] =
      ": has adapters, and a cluster's stages take whole weights: write "
      "them with `stagecoach export --names huggingface --to FOLDER`";
  Trained(ToyAdaptersJob("/base"));
  EXPECT_EQ(Generate({}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr(absl::StrCat("trained", kRefusal)));
  source_ = WriteToyAdapters(folder_, "adapters");
  EXPECT_EQ(Generate({}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr(absl::StrCat("weights  adapters of ", source_,
                                                   "/model.safetensors, merged with ",
                                                   folder_.File("base.safetensors"), "\n")));
  EXPECT_THAT(notes_.str(), HasSubstr(source_ + kRefusal));
  EXPECT_EQ(client_.submits, 0);
}

TEST_F(StageWritingTest, ExportedWeightsOfThisMachineAreBroughtToTheStages) {
  folder_.Write("My.export/model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  folder_.Write("My.export/stagecoach.json",
                FileText(STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml"));
  source_ = folder_.File("other/../My.export");
  folder_.MakeFolder("other");
  Writes({{.text = "b", .done = true, .tokens = 1, .ended = true}});
  Ends(v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(Generate({.prompt = "a", .seed = 9}), 0) << notes_.str();
  const JobSpec job = FromProto(client_.job.spec()).value();
  EXPECT_EQ(job.name, "generate-my-export");
  EXPECT_EQ(job.seed, 9u);
  ASSERT_EQ(client_.store.sets.size(), 1u);
  EXPECT_EQ(job.initialize,
            InitializeSpec{.from = absl::StrCat("store:/data/", client_.store.sets.begin()->first,
                                                "/model.safetensors")});
  EXPECT_EQ(job.resume, ResumeSpec());
  EXPECT_EQ(out_.str(), "ab\n");
}

TEST_F(StageWritingTest, OnePromptIsContinuedAsTheTextComes) {
  Trained(TextJob());
  Waits("waits for 2 stages");
  Writes({{.text = "b"}});
  Writes({{.text = "bc"}, {.offset = 2, .text = "\xff", .done = true, .tokens = 3, .ended = true}});
  Ends(v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(Generate({.prompt = "a", .tokens = 5, .temperature = 0, .top_k = 4, .stops = {"x"}}),
            0);
  EXPECT_EQ(out_.str(), "abc\xff\n");
  const JobSpec job = FromProto(client_.job.spec()).value();
  EXPECT_EQ(job.write, (WriteSpec{.lines = {"a"},
                                  .generate = GenerateSpec{
                                      .tokens = 5, .temperature = 0, .top_k = 4, .stops = {"x"}}}));
  Trained(TextJob());
  context_.output = OutputFormat::kJson;
  ASSERT_EQ(Generate({.prompt = "a", .temperature = 0, .seed = 9}), 0);
  EXPECT_EQ(out_.str(),
            "{\"weights\":\"trained\",\"prompt\":\"a\",\"text\":\"bc\ufffd\",\"tokens\":3,"
            "\"seed\":9,\"temperature\":0.0,\"stopped\":true}\n");
}

TEST_F(StageWritingTest, SeveralPromptsArePrintedWithTheirTextsInOrder) {
  Trained(TextJob());
  Writes({{.line = 1, .text = "y", .done = true}, {.line = 0, .text = "b", .done = true}});
  Ends(v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(Generate({.prompts = folder_.Write("prompts", "a\nx\n")}), 0) << notes_.str();
  EXPECT_EQ(out_.str(), "ab\nxy\n");
}

// Without text, a prompt is no result.
TEST_F(StageWritingTest, AJobThatFailsBeforeItWritesPrintsNoPrompt) {
  Trained(TextJob());
  Ends(v1::JOB_STATE_FAILED, "no stages");
  EXPECT_EQ(Generate({.prompt = "a"}), 1);
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace stagecoach
