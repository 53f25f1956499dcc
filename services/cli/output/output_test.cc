// The texts that programs read: ndjson and the console line are contracts, checked to the byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "base/golden_testing.h"
#include "services/cli/output/console.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/output/progress.h"
#include "services/cli/output/row_runs.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

v1::WatchJobResponse StepRecord(uint64_t step) {
  v1::WatchJobResponse record;
  record.set_step(step);
  v1::StepRecord& done = *record.mutable_step_done();
  done.set_loss(2.31);
  done.set_learning_rate(3e-4);
  done.set_gradient_norm(0.87);
  done.set_tokens_per_second(117029);
  done.set_step_seconds(0.14);
  done.set_bubble(0.31);
  done.set_bubble_ideal(3.0 / 11);
  return record;
}

TEST(Ndjson, AStepIsOneObjectWithTheseKeysInThisOrder) {
  EXPECT_EQ(ToNdjson(StepRecord(120), false),
            R"({"event":"step","step":120,"loss":2.31,"learning_rate":3e-04,"gradient_norm":0.87,)"
            R"("tokens_per_second":117029,"step_seconds":0.14,"bubble":0.31,)"
            R"("bubble_ideal":0.2727272727272727})");
}

TEST(Ndjson, ASkippedStepSaysSoAndItsLossIsNull) {
  v1::WatchJobResponse record = StepRecord(3);
  record.mutable_step_done()->set_loss(std::numeric_limits<double>::quiet_NaN());
  record.mutable_step_done()->set_skipped(true);
  EXPECT_THAT(ToNdjson(record, false), HasSubstr("\"loss\":null"));
  EXPECT_THAT(ToNdjson(record, false), EndsWith(",\"skipped\":true}"));
}

TEST(Ndjson, OtherEvents) {
  v1::WatchJobResponse record;
  record.set_step(50);
  record.mutable_evaluation()->set_loss(1.5);
  EXPECT_EQ(ToNdjson(record, false), R"({"event":"evaluation","step":50,"loss":1.5})");
  for (const auto& [name, value] : {std::pair("bleu", 33.5), std::pair("accuracy", 0.5)}) {
    v1::Measure& measure = *record.mutable_evaluation()->add_measures();
    measure.set_name(name);
    measure.set_value(value);
  }
  EXPECT_EQ(
      ToNdjson(record, false),
      R"({"event":"evaluation","step":50,"loss":1.5,"bleu":33.5,"accuracy":0.5,"signatures":{)"
      R"("bleu":"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",)"
      R"("chrf2":"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"}})");
  record.mutable_checkpoint();
  EXPECT_EQ(ToNdjson(record, false), R"({"event":"checkpoint","step":50})");
  record.mutable_checkpoint()->set_error("disk \"full\"");
  EXPECT_EQ(ToNdjson(record, false), R"({"event":"checkpoint","step":50,"error":"disk \"full\""})");
  record.mutable_recovery()->set_message("stage-1 lost\nat step 51");
  EXPECT_EQ(ToNdjson(record, false),
            R"({"event":"recovery","step":50,"message":"stage-1 lost\nat step 51"})");
  record.mutable_state()->set_detail("running");
  EXPECT_EQ(ToNdjson(record, false), "");
}

TEST(Ndjson, TheLastEventHasStateAndDigest) {
  v1::WatchJobResponse record;
  record.set_step(200);
  v1::FinishedRecord& finished = *record.mutable_finished();
  finished.set_state(v1::JOB_STATE_SUCCEEDED);
  finished.set_loss(0.1);
  finished.set_weights_digest("sha256:ab");
  EXPECT_EQ(ToNdjson(record, false),
            R"({"event":"finished","state":"SUCCEEDED","step":200,"loss":0.1,)"
            R"("weights_digest":"sha256:ab"})");
  finished.set_state(v1::JOB_STATE_FAILED);
  finished.set_weights_digest("");
  finished.set_message("data.text.path: empty");
  record.set_step(0);
  EXPECT_EQ(ToNdjson(record, false),
            R"({"event":"finished","state":"FAILED","step":0,"loss":null,"weights_digest":null,)"
            R"("message":"data.text.path: empty"})");
}

// `local -o ndjson` gave the steps behind a kill twice and alike: the sum over its lines counted
// them twice.
TEST(Ndjson, AStepAndAnEvaluationThatComeAgainSaySo) {
  Replays replays;
  v1::WatchJobResponse evaluation;
  evaluation.set_step(2);
  evaluation.mutable_evaluation()->set_loss(1.5);
  v1::WatchJobResponse recovery;
  recovery.mutable_recovery();
  for (const uint64_t step : {1, 2}) EXPECT_FALSE(replays.Take(StepRecord(step))) << step;
  EXPECT_FALSE(replays.Take(evaluation));
  EXPECT_FALSE(replays.Take(recovery));
  for (const uint64_t step : {1, 2}) EXPECT_TRUE(replays.Take(StepRecord(step))) << step;
  EXPECT_TRUE(replays.Take(evaluation));
  EXPECT_FALSE(replays.Take(StepRecord(3)));
  EXPECT_THAT(ToNdjson(StepRecord(2), true), EndsWith(",\"replayed\":true}"));
  EXPECT_EQ(ToNdjson(evaluation, true),
            R"({"event":"evaluation","step":2,"loss":1.5,"replayed":true})");
}

TEST(Ndjson, ARecordWithoutTextsSaysThatAStepIsDone) {
  v1::WatchJobResponse record;
  record.set_step(3);
  record.mutable_written();
  EXPECT_EQ(ToNdjson(record, false), R"({"event":"written","step":3,"texts":[]})");
}

TEST(JsonNumber, TheTextReadsBackAsTheSameBits) {
  for (const double value :
       {0.1, 1.0 / 3, 1e-310, 1.7976931348623157e308, -0.0, 5e-324, 123456789.0}) {
    const double back = std::strtod(JsonNumber(value).c_str(), nullptr);
    EXPECT_EQ(std::memcmp(&back, &value, sizeof(value)), 0) << JsonNumber(value);
  }
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::infinity()), "null");
}

v1::JobSpec SpecOf(int64_t batch_size) {
  v1::JobSpec spec;
  spec.mutable_training()->set_batch_size(batch_size);
  return spec;
}

// Symptom: a job on pictures had tokens/s, and a U-Net's were pixels.
TEST(Progress, PicturesAreCountedAsPictures) {
  v1::JobSpec spec = SpecOf(64);
  spec.mutable_data()->mutable_mask_folder();
  ProgressState progress(200, spec);
  progress.OnStep(120, StepRecord(120).step_done());
  EXPECT_THAT(progress.Bar(200), HasSubstr("  457 pictures/s  ")) << "64 in 0.14 s";
  EXPECT_THAT(progress.ConsoleLine(), HasSubstr(" step_s=0.140 pictures_s=457 bubble="));
}

// Symptom: a job on pairs of sentences had pictures/s; later one on documents.
TEST(Progress, PairsOfSentencesAndDocumentsAreCountedAsTokens) {
  v1::JobSpec pairs = SpecOf(64), documents = SpecOf(64), tokens = SpecOf(64);
  pairs.mutable_data()->mutable_parallel_text();
  documents.mutable_data()->mutable_json_lines();
  tokens.mutable_data()->mutable_token_file();
  for (const v1::JobSpec& spec : {pairs, documents, tokens}) {
    ProgressState progress(200, spec);
    progress.OnStep(120, StepRecord(120).step_done());
    EXPECT_THAT(progress.ConsoleLine(), HasSubstr(" tokens_s=117029 "));
  }
}

TEST(Progress, TheConsoleLineKeepsItsKeysAndOrder) {
  ProgressState progress(1000, SpecOf(64));
  const v1::WatchJobResponse record = StepRecord(120);
  progress.OnStep(120, record.step_done());
  v1::Job job;
  job.add_stages()->mutable_memory_peak()->set_parameters(1 << 20);
  job.add_stages()->mutable_memory_peak()->set_activations(75161928);
  progress.OnStages(job);
  EXPECT_EQ(progress.ConsoleLine(),
            "step=120/1000 examples=7680 loss=2.3100 lr=3.0e-04 grad_norm=0.870 step_s=0.140 "
            "tokens_s=117029 bubble=0.310 ideal=0.273 mem_peak_gib=0.07 skipped=0 nonfinite=0 "
            "eta=2m03s");
}

TEST(Progress, TheBarFitsTheTerminal) {
  ProgressState progress(200, SpecOf(64));
  EXPECT_EQ(progress.Bar(200), "[>                       ]   0% 0/200");
  progress.OnStep(120, StepRecord(120).step_done());
  EXPECT_EQ(progress.Bar(200),
            "[==============>         ]  60% 120/200  loss 2.310  ETA 11s  117k tokens/s  "
            "bubble 31.0% (ideal 27.3%)");
  for (int columns = 1; columns < 120; ++columns) {
    EXPECT_LE(progress.Bar(columns).size(), static_cast<size_t>(columns));
  }
  progress.OnStep(200, StepRecord(200).step_done());
  EXPECT_THAT(progress.Bar(200), HasSubstr("[========================] 100% 200/200"));
}

TEST(Progress, ANarrowBarKeepsLossAndTimeLeft) {
  ProgressState progress(200, SpecOf(64));
  progress.OnStep(120, StepRecord(120).step_done());
  EXPECT_EQ(progress.Bar(20), "loss 2.310  ETA 11s");
  EXPECT_EQ(progress.Bar(40), "[==> ]  60% 120/200  loss 2.310  ETA 11s");
  EXPECT_EQ(progress.Bar(60), "[==============>         ]  60% 120/200  loss 2.310  ETA 11s");
  EXPECT_EQ(progress.Bar(80),
            "[==============>         ]  60% 120/200  loss 2.310  ETA 11s  117k tokens/s");
}

TEST(Progress, ANarrowBarOfALongJobLeavesTheCountsOut) {
  ProgressState progress(200000, SpecOf(64));
  progress.OnStep(120000, StepRecord(120000).step_done());
  EXPECT_EQ(progress.Bar(20), "2.310 3h06m");
  EXPECT_EQ(progress.Bar(40), "[======>    ] 60%  loss 2.310  ETA 3h06m");
}

TEST(Progress, TheBarHasSharesInPercentAndLossesAsTheyAre) {
  ProgressState progress(200, SpecOf(64));
  v1::WatchJobResponse record = StepRecord(120);
  const std::vector<std::pair<const char*, double>> measures = {{"accuracy", 0.25},
                                                                {"auxiliary_loss", 1.5}};
  for (const auto& [name, value] : measures) {
    v1::Measure& measure = *record.mutable_step_done()->add_measures();
    measure.set_name(name);
    measure.set_value(value);
  }
  progress.OnStep(120, record.step_done());
  EXPECT_THAT(progress.Bar(200), HasSubstr("  loss 2.310  accuracy 25.0%  auxiliary_loss 1.500  "));
}

TEST(Progress, TheEtaIsUnknownBeforeTheFirstStepAndFollowsSlowly) {
  ProgressState progress(100, SpecOf(1));
  EXPECT_LT(progress.EtaSeconds(), 0);
  v1::StepRecord record;
  record.set_step_seconds(1);
  progress.OnStep(1, record);
  EXPECT_DOUBLE_EQ(progress.EtaSeconds(), 99);
  record.set_step_seconds(11);  // one slow step is not the new pace
  progress.OnStep(2, record);
  EXPECT_DOUBLE_EQ(progress.EtaSeconds(), 98 * 2);
}

v1::JobSpec WritingSpec() {
  v1::JobSpec spec;
  spec.mutable_training()->set_batch_size(4);
  for (int i = 0; i < 10; ++i) spec.mutable_write()->add_lines("a");
  return spec;
}

TEST(Progress, AStepOfAJobThatWritesIsAMiniBatchOfLines) {
  ProgressState progress(3, WritingSpec());
  EXPECT_EQ(progress.Bar(80), "[>                       ]   0% 0/3");
  EXPECT_FALSE(progress.OnWritten(0, 100));
  EXPECT_FALSE(progress.OnWritten(0, 101));
  EXPECT_TRUE(progress.OnWritten(1, 102));
  EXPECT_EQ(progress.ConsoleLine(), "step=1/3 lines=4/10 step_s=2.000 mem_peak_gib=0.00 eta=4s");
  EXPECT_EQ(progress.Bar(80), "[========>               ]  33% 1/3  ETA 4s");
  EXPECT_EQ(progress.Bar(12), " 33% 1/3  ET");
  EXPECT_FALSE(progress.OnWritten(1, 103)) << "pieces that come again after a loss of stages";
  EXPECT_TRUE(progress.OnWritten(3, 106));
  EXPECT_EQ(progress.ConsoleLine(), "step=3/3 lines=10/10 step_s=2.000 mem_peak_gib=0.00 eta=0s");
}

TEST(Text, ForPeople) {
  EXPECT_EQ(FormatDuration(42), "42s");
  EXPECT_EQ(FormatDuration(123), "2m03s");
  EXPECT_EQ(FormatDuration(11220), "3h07m");
  EXPECT_EQ(FormatDuration(-1), "?");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(3 << 19), "1.5 MiB");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(117029), "117k");
  EXPECT_EQ(FormatCount(2.5e6), "2.5M");
  EXPECT_EQ(FormatSeconds(0.0125), "12.5 ms");
}

TEST(Table, AlignsColumnsByCharacters) {
  Table table({"NAME", "N"}, {1});
  table.Add({"caf\xc3\xa9", "1"});
  table.Add({"x", "200"});
  EXPECT_EQ(table.ToString(), "NAME    N\ncaf\xc3\xa9    1\nx     200\n");
}

TEST(Console, DataAndNotesGoTheirOwnWays) {
  std::ostringstream out, notes;
  Console console(out, notes, {});
  console.PrintLine("data");
  console.Note("note");
  EXPECT_EQ(console.Fail(absl::NotFoundError("job x: unknown")), 3);
  EXPECT_EQ(out.str(), "data\n");
  EXPECT_EQ(notes.str(), "note\nstagecoach: job x: unknown\n");
  EXPECT_EQ(console.ColoredState("FAILED"), "FAILED") << "no colours unless asked for";
}

TEST(Console, ANoteDoesNotLandInTheBar) {
  std::ostringstream out, notes;
  Console console(out, notes, {.notes_are_terminal = true});
  console.DrawBar("[=> ]");
  console.Note("recovery");
  console.EndBar();
  EXPECT_EQ(notes.str(), "\r\x1b[K[=> ]\r\x1b[Krecovery\n[=> ]\n");
}

TEST(Console, ABarThatIsClearedIsGone) {
  std::ostringstream out, notes;
  Console console(out, notes, {.notes_are_terminal = true});
  console.DrawBar("[=> ]");
  console.ClearBar();
  console.ClearBar();
  console.Note("running");
  console.EndBar();
  EXPECT_EQ(notes.str(), "\r\x1b[K[=> ]\r\x1b[Krunning\n");
}

TEST(LoadingBar, FitsTheTerminal) {
  const std::string text = "stage 0 (a): encodes de.txt: 41 %";
  EXPECT_EQ(LoadingBar(text, 200), "[=========>              ] stage 0 (a): encodes de.txt: 41 %");
  EXPECT_EQ(LoadingBar(text, 45), "[===>     ] stage 0 (a): encodes de.txt: 41 %");
  EXPECT_EQ(LoadingBar(text, 34), text);
  EXPECT_EQ(LoadingBar(text, 11), "stage 0 (a)");
  EXPECT_EQ(LoadingBar("stage 0 (a): looks around", 200), "stage 0 (a): looks around");
  EXPECT_EQ(LoadingBar("gr\xc3\xbc\xc3\x9f"
                       "e",
                       3),
            "gr")
      << "no half of a character";
  EXPECT_EQ(LoadingBar("\x1b[2J: 1 %", 80), "[>                       ] \\x1b[2J: 1 %");
  EXPECT_EQ(LoadingBar(text, 0), "");
}

TEST(Ndjson, WhatALoadIsAtHasItsPercentage) {
  v1::WatchJobResponse loading;
  loading.set_step(3);
  loading.mutable_state()->set_message("stage 0 (a): encodes \"x\": 41 %");
  EXPECT_EQ(LoadingNdjson(loading),
            "{\"event\":\"loading\",\"step\":3,\"message\":\"stage 0 (a): encodes \\\"x\\\": 41 "
            "%\",\"percent\":41}");
  loading.mutable_state()->set_message("looks");
  EXPECT_EQ(LoadingNdjson(loading), "{\"event\":\"loading\",\"step\":3,\"message\":\"looks\"}");
}

TEST(Console, SaysThatNobodyReadsTheDataAnyMore) {
  std::ostringstream out, notes;
  int lost = 0;
  Console console(out, notes, {.on_output_lost = [&lost] { ++lost; }});
  console.PrintLine("read");
  EXPECT_EQ(lost, 0);
  out.setstate(std::ios::badbit);  // as a closed pipe does
  console.PrintLine("lost");
  EXPECT_EQ(lost, 1);
}

TEST(Console, ColorsAreForTerminalsOnly) {
  std::ostringstream out, notes;
  Console plain(out, notes, {});
  EXPECT_EQ(plain.ColoredState("FAILED"), "FAILED");
  plain.Fail(absl::NotFoundError("no job x"));
  EXPECT_EQ(notes.str(), "stagecoach: no job x\n");
  notes.str("");
  Console colored(out, notes, {.out_has_color = true, .notes_have_color = true});
  EXPECT_EQ(colored.ColoredState("FAILED"), "\x1b[31mFAILED\x1b[0m");
  EXPECT_EQ(colored.ColoredState("PENDING"), "PENDING") << "nothing to say about it";
  colored.Fail(absl::NotFoundError("no job x"));
  EXPECT_EQ(notes.str(), "\x1b[1;31mstagecoach:\x1b[0m no job x\n");
  notes.str("");
  colored.DrawBar("[==>  ]  50% 1/2");
  EXPECT_THAT(notes.str(), HasSubstr("[\x1b[36m==>\x1b[0m  ]  50% 1/2"));
}

// A file's name, or what a server said, wrote to the terminal as it liked.
TEST(Console, NotesAreShownAndNotObeyed) {
  std::ostringstream out, notes;
  Console console(out, notes, {});
  console.Note("two\nlines \x1b[2J\xff");
  console.Fail(absl::NotFoundError("no job \u202ex\x07"));
  EXPECT_EQ(notes.str(), "two\nlines \\x1b[2J\\xff\nstagecoach: no job \\xe2\\x80\\xaex\\x07\n");
}

TEST(Table, AColorTakesNoPlace) {
  Table table({"STATE", "NAME"});
  table.Add({"\x1b[32mready\x1b[0m", "a"});
  table.Add({"lost", "b"});
  EXPECT_EQ(table.ToString(), "STATE  NAME\n\x1b[32mready\x1b[0m  a\nlost   b\n");
}

// Symptom: a job at step 0 had no "step" in the client's JSON and had one over HTTP.
TEST(JobOutput, JsonHasItsZeros) {
  v1::Job job;
  job.set_id("gpt-1");
  const std::string json = ToJson(job, OutputFormat::kNdjson);
  EXPECT_THAT(json, HasSubstr("\"step\":\"0\""));
  EXPECT_THAT(json, HasSubstr("\"bubble\":0"));
  EXPECT_THAT(json, testing::Not(HasSubstr("\"loss\""))) << "absent, which is not 0";
}

TEST(JobOutput, AFleetAndItsJobsAsTables) {
  std::ostringstream out, notes;
  const Console console(out, notes, {});
  v1::ListJobsResponse jobs;
  v1::Job& job = *jobs.add_jobs();
  job.set_id("gpt-1");
  job.mutable_summary()->set_name("gpt");
  job.set_total_steps(200);
  job.set_step(120);
  job.set_state(v1::JOB_STATE_RUNNING);
  EXPECT_THAT(JobTable(jobs, console),
              HasSubstr("gpt-1  gpt   120/200     -  -          RUNNING\n"));
  EXPECT_THAT(JobDescription(job, console), HasSubstr("Step:           120/200\n"));
  EXPECT_THAT(JobDescription(job, console), HasSubstr("Precision:      float32\n"));
  job.mutable_spec()->set_precision(v1::PRECISION_BFLOAT16);
  EXPECT_THAT(JobDescription(job, console), HasSubstr("Precision:      bfloat16\n"));
  job.mutable_spec()->clear_precision();
  v1::Job& in_epochs = *jobs.add_jobs();
  in_epochs.set_id("vit-1");
  in_epochs.mutable_summary()->set_name("vit");
  in_epochs.mutable_summary()->set_epochs(2);
  EXPECT_THAT(JobTable(jobs, console), HasSubstr("vit-1  vit   0, 2 epochs"));
  EXPECT_THAT(ToJson(jobs, OutputFormat::kNdjson), HasSubstr(R"("total_steps":"200")"));
}

TEST(JobOutput, AJobThatWritesHasNoLossAndNoForecast) {
  v1::Job job;
  *job.mutable_spec() = WritingSpec();
  job.set_step(2);
  job.set_total_steps(3);
  job.set_step_seconds(0.5);
  job.set_forecast_step_seconds(7);
  job.set_tokens_per_second(900);
  std::ostringstream out, notes;
  const std::string text = JobDescription(job, Console(out, notes, {}));
  EXPECT_THAT(text, HasSubstr("Throughput:     900 tokens/s\n"));
  for (const char* of_training : {"Loss", "forecast", "Bubble", "Skipped"}) {
    EXPECT_THAT(text, testing::Not(HasSubstr(of_training)));
  }
}

TEST(JobOutput, ClassesStandInATableOfTheirOwn) {
  std::ostringstream out, notes;
  const Console console(out, notes, {});
  v1::Job job;
  job.set_evaluation_loss(1.5);
  const std::pair<const char*, double> measures[] = {{"mean_iou", 0.5},
                                                     {"accuracy/0", 0.75},
                                                     {"accuracy/10", 0.25},
                                                     {"iou/0", 0.625},
                                                     {"iou/2", 0}};
  for (const auto& [name, value] : measures) {
    v1::Measure& measure = *job.add_evaluation_measures();
    measure.set_name(name);
    measure.set_value(value);
  }
  EXPECT_EQ(MeasuresText(job.evaluation_measures()), " mean_iou=0.5000");
  const std::string text = JobDescription(job, console);
  EXPECT_THAT(text, HasSubstr("Held-out mean_iou: 0.5000\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("accuracy/")));
  EXPECT_THAT(text, HasSubstr("CLASS  ACCURACY     IOU\n"
                              "    0    0.7500  0.6250\n"
                              "    2         -  0.0000\n"
                              "   10    0.2500       -\n"));
}

// Symptom: `describe -o json` of a job in epochs gave both epochs and the steps that they came to,
// a spec that no coordinator takes.
TEST(JobOutput, TheStepsOfAJobInEpochsStandBesideItsSpec) {
  std::ostringstream out, notes;
  const Console console(out, notes, {});
  v1::Job job;
  job.mutable_spec()->mutable_training()->set_epochs(2);
  job.mutable_summary()->set_epochs(2);
  job.set_step(3);
  EXPECT_THAT(JobDescription(job, console), HasSubstr("Step:           3, 2 epochs\n"));
  job.set_total_steps(52);
  EXPECT_THAT(JobDescription(job, console), HasSubstr("Step:           3/52\n"));
  EXPECT_THAT(ToJson(job, OutputFormat::kNdjson),
              testing::AllOf(HasSubstr(R"("epochs":2)"), HasSubstr(R"("total_steps":"52")"),
                             HasSubstr(R"("steps":"0")")));
}

TEST(JobOutput, AJobSaysWhatItOccupies) {
  std::ostringstream out, notes;
  const Console console(out, notes, {});
  v1::Job job;
  EXPECT_THAT(JobDescription(job, console), testing::Not(HasSubstr("On disk")))
      << "an older coordinator does not tell";
  job.mutable_usage()->set_checkpoints(2);
  job.mutable_usage()->set_checkpoint_bytes(3 << 20);
  job.mutable_usage()->set_export_bytes(1 << 20);
  job.mutable_usage()->set_record_bytes(512);
  EXPECT_THAT(JobDescription(job, console),
              HasSubstr("On disk:        4.0 MiB: 2 checkpoints 3.0 MiB, exports 1.0 MiB, records "
                        "512 B\n"));
  job.mutable_usage()->set_checkpoints_error("s3://bucket: nobody answers");
  EXPECT_THAT(JobDescription(job, console),
              testing::AllOf(HasSubstr("Checkpoint:     not known: the store does not tell: "
                                       "s3://bucket: nobody answers\n"),
                             HasSubstr("On disk:        checkpoints not known, exports 1.0 MiB")));
}

TEST(JobOutput, APlanSaysInWhichPrecisionItCounts) {
  v1::PlanJobResponse plan;
  EXPECT_THAT(PlanText(plan, false), HasSubstr("\nprecision   float32\n"));
  plan.set_precision(v1::PRECISION_TENSORFLOAT32);
  EXPECT_THAT(PlanText(plan, false), HasSubstr("\nprecision   tensorfloat32\n"));
}

// Symptom: times at an assumed rate looked as if somebody had measured this machine.
TEST(JobOutput, PlannedTimesSayWhereTheyComeFrom) {
  v1::PlanJobResponse plan;
  plan.set_step_seconds(0.222);
  plan.set_rate_source(v1::RATE_SOURCE_ASSUMED);
  plan.set_flops_per_second(150e9);
  EXPECT_THAT(PlanText(plan, false),
              HasSubstr("\nstep time   222.0 ms forecast at an assumed 150 GFLOP/s a stage\n"));
  plan.set_rate_source(v1::RATE_SOURCE_GIVEN);
  plan.set_flops_per_second(87.5e9);
  EXPECT_THAT(PlanText(plan, false),
              HasSubstr("\nstep time   222.0 ms forecast at 87.5 GFLOP/s a stage, as given\n"));
  v1::Job job;
  job.set_step_seconds(0.428);
  job.set_forecast_step_seconds(0.222);
  job.set_forecast_rate_source(v1::RATE_SOURCE_PROFILE);
  std::ostringstream results, notes;
  const Console console(results, notes, {});
  EXPECT_THAT(JobDescription(job, console),
              HasSubstr("428.0 ms (forecast 222.0 ms from a stage's profile)\n"));
}

TEST(JobOutput, APlanWithoutItsScheduleSaysSo) {
  v1::PlanJobResponse plan;
  EXPECT_THAT(PlanText(plan, true), HasSubstr("the schedule is too long to be sent"));
  plan.set_schedule("F0 B0");
  EXPECT_THAT(PlanText(plan, true), HasSubstr("\nF0 B0\n"));
}

// The second layer lets half a kilobyte ride past it and gives another one.
TEST(JobOutput, APlanShowsTheLayersOfItsNetwork) {
  v1::PlanJobResponse plan;
  plan.add_stages()->set_last_layer(2);
  plan.add_stages()->set_first_layer(2);
  plan.mutable_stages(1)->set_last_layer(3);
  const auto add = [&](const char* label, const char* type, int64_t own, int64_t cut) {
    v1::PlannedLayer& layer = *plan.add_layers();
    layer.set_label(label);
    layer.add_outputs(type);
    layer.set_parameters(100 * plan.layers_size());
    layer.set_forward_flops(1000 * plan.layers_size());
    layer.set_backward_flops(2000 * plan.layers_size());
    layer.set_own_cut_bytes(own);
    layer.set_cut_bytes(cut);
  };
  add("embedding", "activation[n, 8, 16]", 512, 512);
  add("residual(layer_norm, mlp)", "activation[n, 8, 16]", 512, 1536);
  plan.mutable_layers(1)->add_outputs("activation[n, 4]");
  add("linear", "activation[n, 8, 40]", 1280, 1280);
  ExpectGolden("plan_layers.txt", PlanText(plan, false));
}

TEST(RowRuns, AreBlocksThatRepeat) {
  using Keys = std::vector<std::string>;
  EXPECT_EQ(FindRowRuns(Keys{}, 4), std::vector<RowRun>{});
  EXPECT_EQ(FindRowRuns(Keys{"a", "a"}, 4), (std::vector<RowRun>{{0, 1, 1}, {1, 2, 1}}))
      << "twice is not often enough";
  EXPECT_EQ(FindRowRuns(Keys{"e", "a", "b", "a", "b", "a", "b", "a", "h"}, 4),
            (std::vector<RowRun>{{0, 1, 1}, {1, 7, 2}, {7, 8, 1}, {8, 9, 1}}));
  EXPECT_EQ(FindRowRuns(Keys{"a", "a", "a", "a", "a", "a"}, 4), (std::vector<RowRun>{{0, 6, 1}}));
  EXPECT_EQ(FindRowRuns(Keys{"a", "a", "a"}, 0),
            (std::vector<RowRun>{{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}));
}

// Symptom: the plan of GPipe's Transformer of 1,663 blocks on 128 stages had 3,596 lines.
TEST(JobOutput, APlanOfManyLayersAndStagesShowsOnceWhatRepeats) {
  v1::PlanJobResponse plan;
  const auto add = [&](const char* label, int64_t parameters) {
    v1::PlannedLayer& layer = *plan.add_layers();
    layer.set_label(label);
    layer.add_outputs("activation[n, 8, 16]");
    layer.set_parameters(parameters);
    layer.set_own_cut_bytes(512);
    layer.set_cut_bytes(512);
  };
  add("embedding", 100);
  for (int i = 0; i < 100; ++i) {
    add("attention", 200);
    add("mlp", 300);
  }
  add("linear", 400);
  for (int i = 0; i < 50; ++i) {
    v1::PlannedStage& stage = *plan.add_stages();
    stage.set_first_layer(i == 0 ? 0 : 4 * i + 1);
    stage.set_last_layer(i == 49 ? 202 : 4 * i + 5);
    stage.set_parameters(i == 0 ? 1100 : i == 49 ? 1400 : 1000);
  }
  ExpectGolden("plan_repeats.txt", PlanText(plan, false));
}

// Symptom: a path in another encoding made a line of `-o ndjson` that no JSON reader takes.
TEST(JsonText, BytesThatAreNotUtf8AreReplacedInJson) {
  EXPECT_EQ(JsonText("caf\xe9 \"a\" \x01"), "\"caf\xef\xbf\xbd \\\"a\\\" \\u0001\"");
  EXPECT_EQ(JsonText("caf\xc3\xa9"), "\"caf\xc3\xa9\"") << "what is UTF-8 stays";
  EXPECT_EQ(JsonText("cut \xe2\x82"), "\"cut \xef\xbf\xbd\"");
}

}  // namespace
}  // namespace stagecoach
