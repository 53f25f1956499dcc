// What a user's file may and may not be. Every refusal must say where, what, and what would be
// right.
#include "services/cli/spec/spec_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/testing/temporary_folder.h"
#include "google/protobuf/descriptor.h"
#include "plan/plan.h"
#include "services/cli/output/job_output.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kGood[] = R"(name: tiny
seed: 1
model:
  gpt: {layers: 2, width: 32, heads: 2, context: 16, vocabulary: 128}
data:
  text: {path: input.txt}
training:
  steps: 6
  batch_size: 6
  micro_batches: 4
  optimizer: {adamw: {beta1: 0.9, epsilon: 1.0e-8}}
  learning_rate: {cosine: {peak: 3.0e-4, warmup_steps: 2, final: 3.0e-5}}
pipeline:
  stages: 2
  schedule: gpipe
  partition: auto
)";

std::string Changed(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kGood, {{from, to}});
  EXPECT_NE(text, kGood) << from;
  return text;
}

// The message of the error that reading and validating give; "" if there is none.
std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<SpecFile> file = ParseSpec(text, "job.yaml");
  const absl::Status status = file.ok() ? ValidateSpecFile(*file).status() : file.status();
  if (!status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  return std::string(status.message());
}

v1::JobSpec SpecOf(const std::string& text) {
  const absl::StatusOr<SpecFile> file = ParseSpec(text, "/jobs/job.yaml");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? file->spec : v1::JobSpec();
}

TEST(SpecReader, TakesAGoodSpec) {
  EXPECT_EQ(ErrorOf(kGood), "");
  const v1::JobSpec spec = SpecOf(kGood);
  EXPECT_EQ(spec.name(), "tiny");
  EXPECT_EQ(spec.model().gpt().width(), 32);
  EXPECT_EQ(spec.training().learning_rate().cosine().peak(), 3.0e-4);
  EXPECT_EQ(spec.training().optimizer().adamw().epsilon(), 1.0e-8);
  EXPECT_FALSE(spec.training().optimizer().adamw().has_beta2()) << "absent is not zero";
  EXPECT_EQ(spec.pipeline().schedule(), v1::SCHEDULE_KIND_GPIPE);
  EXPECT_EQ(spec.pipeline().partition().rule(), v1::PARTITION_RULE_AUTO);
}

TEST(SpecReader, TakesTheSpecialForms) {
  EXPECT_EQ(SpecOf(Changed("stages: 2", "stages: auto")).pipeline().stages(), 0);
  EXPECT_EQ(SpecOf(Changed("gpipe", "one_forward_one_backward")).pipeline().schedule(),
            v1::SCHEDULE_KIND_ONE_FORWARD_ONE_BACKWARD);
  EXPECT_EQ(SpecOf(Changed("partition: auto", "rematerialization: except_first"))
                .pipeline()
                .rematerialization(),
            v1::REMATERIALIZATION_EXCEPT_FIRST);
  EXPECT_EQ(SpecOf(Changed("partition: auto", "partition: uniform")).pipeline().partition().rule(),
            v1::PARTITION_RULE_UNIFORM);
  EXPECT_EQ(SpecOf(kGood).precision(), v1::PRECISION_UNSPECIFIED);
  EXPECT_EQ(SpecOf(Changed("seed: 1", "precision: bfloat16")).precision(), v1::PRECISION_BFLOAT16);
  EXPECT_EQ(SpecOf(Changed("seed: 1", "precision: tensorfloat32")).precision(),
            v1::PRECISION_TENSORFLOAT32);
  const v1::JobSpec cuts = SpecOf(Changed("partition: auto", "partition: {cuts: [3, 6]}"));
  EXPECT_THAT(cuts.pipeline().partition().cuts(), testing::ElementsAre(3, 6));
}

TEST(SpecReader, TakesALayerList) {
  const v1::JobSpec spec = SpecOf(R"(
name: layers
model:
  sequence:
    width: 8
    context: 4
    vocabulary: 16
    layers: [{embedding: {}}, {residual: {layers: [{layer_norm: {}}, {mlp: {hidden: 32}}]}}]
)");
  ASSERT_EQ(spec.model().sequence().layers_size(), 2);
  EXPECT_EQ(spec.model().sequence().layers(1).residual().layers(1).mlp().hidden(), 32);
}

TEST(SpecReader, TakesTheLayersOfAnEncoder) {
  const v1::JobSpec spec = SpecOf(R"(
name: pairs
model:
  sequence:
    width: 8
    source_context: 4
    target_context: 5
    vocabulary: 16
    encoder: [{embedding: {}}, {residual: {layers: [layer_norm: {}, attention: {heads: 2, causal: false}]}}]
    layers: [{embedding: {}}, {residual: {layers: [{cross_attention: {heads: 4}}]}}, {linear: {out: 16}}]
)");
  const v1::LayerListModel& list = spec.model().sequence();
  ASSERT_EQ(list.encoder_size(), 2);
  EXPECT_FALSE(list.encoder(1).residual().layers(1).attention().causal());
  EXPECT_EQ(list.layers(1).residual().layers(0).cross_attention().heads(), 4);
  EXPECT_EQ(list.target_context(), 5);
}

// One number for both extents of an image, or height and width.
TEST(SpecReader, TakesANumberWhereAListOfOneIsMeant) {
  const v1::JobSpec spec = SpecOf(R"(
model:
  sequence:
    image: [28, 28, 1]
    classes: 10
    layers: [{convolution: {out: 8, kernel: 3, stride: [2, 1]}}]
)");
  ASSERT_EQ(spec.model().sequence().layers_size(), 1);
  const v1::ConvolutionLayer& layer = spec.model().sequence().layers(0).convolution();
  EXPECT_THAT(layer.kernel(), testing::ElementsAre(3));
  EXPECT_THAT(layer.stride(), testing::ElementsAre(2, 1));
  EXPECT_THAT(spec.model().sequence().image(), testing::ElementsAre(28, 28, 1));
}

TEST(SpecReader, ScalarsHaveTheTypeOfTheirField) {
  // YAML would guess a truth value, a number and a number.
  EXPECT_EQ(SpecOf(Changed("name: tiny", "name: no")).name(), "no");
  EXPECT_EQ(SpecOf(Changed("name: tiny", "name: 007")).name(), "007");
  EXPECT_EQ(SpecOf(Changed("name: tiny", "name: \"12\"")).name(), "12");
  EXPECT_EQ(SpecOf(Changed("seed: 1", "seed: 18446744073709551615")).seed(), UINT64_MAX);
}

TEST(SpecReader, TakesJson) {
  const v1::JobSpec from_yaml = SpecOf(kGood);
  for (const OutputFormat format : {OutputFormat::kJson, OutputFormat::kNdjson}) {
    const std::string json = ToJson(from_yaml, format);
    EXPECT_EQ(SpecOf(json).SerializeAsString(), from_yaml.SerializeAsString()) << json;
  }
  EXPECT_EQ(SpecOf("{\"name\":\"a\\u0062\\/c\",\n\t\"seed\":3}").name(), "ab/c");
}

// Symptom: a job file that was cut off was "a field name must be a plain word". Cause: yaml-cpp
// gives the end of an open { as a field without a name.
TEST(SpecReader, UnfinishedJsonIsSaidToEndTooEarly) {
  EXPECT_EQ(
      ErrorOf("{\"name\": \"tiny\",\n \"model\": {\"gpt\": {\"layers\": 2,\n"),
      "job.yaml:2:19: the file ends before the { that stands here is closed; was it cut off?");
  EXPECT_THAT(ErrorOf("{\"name\": \"tiny\""),
              HasSubstr("job.yaml:1:1: the file ends before the {"));
  EXPECT_THAT(ErrorOf("{"), HasSubstr("the file ends before the {"));
  EXPECT_THAT(ErrorOf("{\"name\": \"a } and [ b"), HasSubstr("1:10: the file ends before the \""));
  EXPECT_THAT(ErrorOf("{\"a\": [1, 2"), HasSubstr("1:7: the file ends before the ["));
  // Closed, and wrong for another reason.
  EXPECT_THAT(ErrorOf("{\"name\": \"a\\\"}\", [1]: 2}"), HasSubstr("plain word"));
  EXPECT_THAT(ErrorOf("{\"name\": \"tiny\"]"), HasSubstr("not valid YAML"));
}

// A spec as printed has a 0 for every choice that was left out.
TEST(SpecReader, TakesBackTheZerosThatItPrints) {
  const std::string json = ToJson(SpecOf("name: bare\n"), OutputFormat::kNdjson);
  EXPECT_THAT(json, HasSubstr("\"seed\":\"0\""));
  EXPECT_THAT(json, HasSubstr("\"precision\":\"PRECISION_UNSPECIFIED\""));
  EXPECT_EQ(SpecOf(json).SerializeAsString(), SpecOf("name: bare\n").SerializeAsString());
}

TEST(SpecReader, DashIsStandardInputWithPathsFromTheCurrentFolder) {
  std::istringstream text(kGood);
  std::streambuf* const own = std::cin.rdbuf(text.rdbuf());
  const absl::StatusOr<SpecFile> read = ReadSpecFile("-");
  std::cin.rdbuf(own);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->file, "standard input");
  EXPECT_EQ(read->spec.data().text().path(),
            (std::filesystem::current_path() / "input.txt").string());

  std::istringstream endless(std::string((1 << 20) + 1, ' '));
  std::cin.rdbuf(endless.rdbuf());
  const absl::Status too_big = ReadSpecFile("-").status();
  std::cin.rdbuf(own);
  std::cin.clear();
  EXPECT_THAT(std::string(too_big.message()), HasSubstr("larger than 1048576 bytes"));
}

TEST(SpecReader, MakesDataPathsAbsoluteFromTheJobFilesFolder) {
  EXPECT_EQ(SpecOf(kGood).data().text().path(), "/jobs/input.txt");
  EXPECT_EQ(SpecOf(Changed("input.txt", "../data/./a.txt")).data().text().path(), "/data/a.txt");
  EXPECT_EQ(SpecOf(Changed("input.txt", "/there/a.txt")).data().text().path(), "/there/a.txt");
}

// A job file in a linked folder trained on another file than the one that the system opens:
// "jobs/.." was folded as text.
TEST(SpecReader, ADotdotBehindALinkLeadsWhereTheSystemGoes) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const fs::path base = folder.path();
  fs::create_directories(base / "project/jobs");
  fs::create_directories(base / "project/data");
  fs::create_directories(base / "home");
  fs::create_directory_symlink(base / "project/jobs", base / "home/jobs");
  const auto path_of = [](const std::string& path, const fs::path& file) {
    const absl::StatusOr<SpecFile> read = ParseSpec(Changed("input.txt", path), file.string());
    EXPECT_TRUE(read.ok()) << read.status();
    return read->spec.data().text().path();
  };
  const std::string meant = (base / "project/data/input.txt").string();
  EXPECT_EQ(path_of("../data/input.txt", base / "project/jobs/job.yaml"), meant);
  EXPECT_EQ(path_of("../data/input.txt", base / "home/jobs/job.yaml"), meant);
  EXPECT_EQ(path_of((base / "home/jobs/../data/input.txt").string(), "/jobs/job.yaml"), meant)
      << "an absolute one";
  EXPECT_EQ(path_of("./input.txt", base / "home/jobs/job.yaml"),
            (base / "home/jobs/input.txt").string())
      << "a link stays where nothing leads out of it";
}

TEST(SpecReader, MakesEachPathOfAListAbsoluteFromTheJobFilesFolder) {
  const auto file = ParseSpec(
      "data: {parallel_text: {tokenizer: t, sources: [a, /b], targets: [../c, d], "
      "tags: [e, f]}}",
      "/jobs/here/job.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  const v1::ParallelTextData& data = file->spec.data().parallel_text();
  EXPECT_EQ(data.tokenizer(), "/jobs/here/t");
  EXPECT_THAT(data.sources(), ElementsAre("/jobs/here/a", "/b"));
  EXPECT_THAT(data.targets(), ElementsAre("/jobs/c", "/jobs/here/d"));
  EXPECT_THAT(data.tags(), ElementsAre("e", "f"));
  EXPECT_EQ(data.test_sources_size(), 0);
}

// A refused file of a list is found by the list's place.
TEST(SpecReader, AnErrorOfAListsEntryHasItsPlace) {
  const std::string text = Changed("text: {path: input.txt}",
                                   "parallel_text:\n    tokenizer: t\n    sources: [a, \"\"]");
  EXPECT_THAT(ErrorOf(text), HasSubstr("data.parallel_text.sources[1]: \"\"; must name a file"));
  EXPECT_THAT(ErrorOf(text), StartsWith("job.yaml:8:"));
}

TEST(SpecReader, MakesThePathOfWeightsAbsoluteFromTheJobFilesFolder) {
  const auto from = [](const std::string& path) {
    return SpecOf(absl::StrCat(kGood, "initialize: {from: ", path, "}\n")).initialize().from();
  };
  EXPECT_EQ(from("../exports/./trunk"), "/exports/trunk");
  EXPECT_EQ(from("/there/resnet50.safetensors"), "/there/resnet50.safetensors");
}

// "not valid YAML: illegal map value", at the colon behind, was all that was said.
TEST(SpecReader, ACharacterThatIsNoBlankIsNamedWithItsColumn) {
  EXPECT_EQ(ErrorOf(Changed("  steps", "\tsteps")),
            "job.yaml:8:1: a tab, U+0009, stands here; YAML takes blanks, U+0020, alone");
  EXPECT_EQ(ErrorOf(Changed("  steps", "  \tsteps")),
            "job.yaml:8:3: a tab, U+0009, stands here; YAML takes blanks, U+0020, alone");
  EXPECT_EQ(
      ErrorOf(Changed("  steps", "\u00a0 steps")),
      "job.yaml:8:1: a no-break space, U+00A0, stands here; YAML takes blanks, U+0020, alone");
  EXPECT_THAT(ErrorOf(Changed("  steps", "  \u200bsteps")),
              HasSubstr("unknown field (it has a zero-width space, U+200B)"));
  EXPECT_THAT(ErrorOf(Changed("steps: 6", "steps: \u00a06")),
              HasSubstr("(it has a no-break space, U+00A0); wants a whole number"));
  EXPECT_EQ(ErrorOf(Changed("seed: 1", "seed: 1\t# \u00a0 a remark")), "")
      << "behind a value and in a remark they do no harm";
}

// "illegal map value", at the colon of the next line, was all that was said.
TEST(SpecReader, AFieldWithoutABlankBehindItsColonIsNamed) {
  EXPECT_EQ(ErrorOf(Changed("seed: 1", "seed:1")),
            "job.yaml:2:6: a blank has to stand here, behind the colon of a field");
  EXPECT_EQ(ErrorOf(Changed("steps: 6", "steps:6")),
            "job.yaml:8:9: a blank has to stand here, behind the colon of a field");
}

// "evaluation.batches: 0; must be >= 1", of a field that nobody wrote.
TEST(SpecReader, AnEvaluationTakesAllThatIsHeldOutUnlessTheJobSaysHowMuch) {
  const auto batches = [](const std::string& evaluation) {
    const absl::StatusOr<SpecFile> file = ParseSpec(absl::StrCat(kGood, evaluation), "job.yaml");
    const absl::StatusOr<ValidSpecFile> valid = ValidateSpecFile(*file);
    EXPECT_TRUE(valid.ok()) << valid.status();
    return valid->job.evaluation.batches;
  };
  EXPECT_EQ(batches("evaluation: {every_steps: 2}\n"), 1'000'000) << "more than any has";
  EXPECT_EQ(batches("evaluation: {every_epochs: 0.5}\n"), 1'000'000);
  EXPECT_EQ(batches("evaluation: {every_steps: 2, batches: 3}\n"), 3);
  EXPECT_EQ(batches(""), 0) << "it does not evaluate";
}

TEST(SpecReader, TruthIsWrittenInOneWay) {
  for (const char* given : {"True", "TRUE", "yes", "on", "1"}) {
    EXPECT_THAT(
        ErrorOf(Changed("path: input.txt", absl::StrCat("path: input.txt, bytes: ", given))),
        HasSubstr(
            absl::StrCat("data.text.bytes: \"", given, "\"; wants true or false, in lower case")));
  }
}

TEST(SpecReader, AFileOfAnotherKindIsNamed) {
  const struct {
    std::string text, named;
  } rows[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 1\n",
       "job.yaml: is a Git LFS pointer, not a job file; fetch the file itself (git lfs pull)"},
      {"<!DOCTYPE html>\n<html>\n", "job.yaml: is an HTML page, not a job file; "},
      {std::string("PK\x03\x04\xff\xfe", 6), "job.yaml: is a zip archive, not a job file; unpack"},
      {R"({"metadata": {"total_size": 1}, "weight_map": {"a": "b"}})",
       "job.yaml: is the index of sharded weights (index.json), not a job file"},
  };
  for (const auto& row : rows) EXPECT_THAT(ErrorOf(row.text), StartsWith(row.named));
}

TEST(SpecReader, UnknownFieldsAreNamedWithPlaceAndSuggestion) {
  EXPECT_EQ(ErrorOf(Changed("micro_batches", "micro_batchs")),
            "job.yaml:10:3: training.micro_batchs: unknown field; did you mean \"micro_batches\"?");
  EXPECT_THAT(ErrorOf(Changed("width", "widht")),
              StartsWith("job.yaml:4:20: model.gpt.widht: unknown field; did you mean \"width\"?"));
  EXPECT_THAT(ErrorOf(Changed("gpt:", "electron:")), HasSubstr("known here: gpt, sequence"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "modle: {}\n")),
              StartsWith("job.yaml:17:1: modle: unknown field; did you mean \"model\"?"));
}

TEST(SpecReader, LayersInListsAreNamedByIndex) {
  EXPECT_THAT(
      ErrorOf("name: x\nmodel:\n  sequence:\n    layers:\n    - embedding: {}\n"
              "    - residual: {layers: [{mlp: {hiden: 3}}]}\n"),
      HasSubstr(
          "job.yaml:6:34: model.sequence.layers[1].residual.layers[0].mlp.hiden: unknown field"));
}

// An error cleared the terminal of whoever looked at a job file, or wrote it anew from right to
// left.
TEST(SpecReader, ErrorsQuoteAFileWithoutItsCommandsToTerminals) {
  EXPECT_THAT(ErrorOf("\"\\e[2J\": 1\n"), HasSubstr("job.yaml:1:1: \\x1b[2J: unknown field"));
  EXPECT_THAT(ErrorOf("\u202egnp: 1\n"), HasSubstr("\\xe2\\x80\\xaegnp: unknown field"));
  EXPECT_THAT(ErrorOf("\"\\x9b\": 1\n\"\\x9b\": 1\n"), HasSubstr("\\xc2\\x9b: "));
  EXPECT_THAT(ErrorOf(Changed("steps: 6", "steps: \"\\a\"")),
              HasSubstr("training.steps: \"\\x07\";"));
  const std::string cut = ErrorOf(Changed("steps: 6", "steps: " + std::string(59, 'x') + "\u20ac"));
  EXPECT_THAT(cut, HasSubstr("xxx\\xe2...\"")) << "a character that the quotation ends in";
}

TEST(SpecReader, RefusesAFieldGivenTwice) {
  EXPECT_THAT(ErrorOf(Changed("steps: 6", "steps: 6\n  steps: 7")),
              StartsWith("job.yaml:9:3: steps: given twice"));
}

TEST(SpecReader, RefusesTwoMembersOfOneChoice) {
  EXPECT_THAT(ErrorOf(Changed("{adamw: {beta1: 0.9, epsilon: 1.0e-8}}", "{adamw: {}, sgd: {}}")),
              StartsWith("job.yaml:11:26: training.optimizer.sgd: adamw is given already"));
}

TEST(SpecReader, RefusesValuesOfTheWrongTypeAndSaysWhatIsWanted) {
  EXPECT_EQ(ErrorOf(Changed("steps: 6", "steps: many")),
            "job.yaml:8:10: training.steps: \"many\"; wants a whole number");
  EXPECT_THAT(ErrorOf(Changed("steps: 6", "steps: 6.5")), HasSubstr("wants a whole number"));
  EXPECT_THAT(ErrorOf(Changed("steps: 6", "steps: 99999999999999999999")),
              HasSubstr("wants a whole number"));
  EXPECT_THAT(ErrorOf(Changed("steps: 6", "steps: [6]")), HasSubstr("a list; wants a whole"));
  EXPECT_THAT(ErrorOf(Changed("steps: 6", "steps:")), HasSubstr("no value given"));
  EXPECT_THAT(ErrorOf(Changed("seed: 1", "seed: -1")), HasSubstr("from 0 to 2^64 - 1"));
  EXPECT_THAT(ErrorOf(Changed("stages: 2", "stages: all")), HasSubstr("a whole number or auto"));
  EXPECT_THAT(ErrorOf(Changed("input.txt", "{a: b}")), HasSubstr("wants a text"));
  EXPECT_THAT(ErrorOf(Changed("gpt: {", "gpt: 3 #")), HasSubstr("wants a group of fields (layers"));
  EXPECT_THAT(ErrorOf(Changed("schedule: gpipe", "continue_with_fewer_stages: yes")),
              HasSubstr("wants true or false"));
  EXPECT_THAT(ErrorOf(Changed("partition: auto", "partition: [3, 6]")),
              HasSubstr("{cuts: [3, 6]}"));
  EXPECT_THAT(ErrorOf(Changed("partition: auto", "partition: {cuts: 3}")), HasSubstr("a list"));
  EXPECT_THAT(ErrorOf("model: {mlp: {image: large}}"),
              HasSubstr("model.mlp.image: \"large\"; wants a list, [...], or one number"));
  EXPECT_THAT(ErrorOf("- name: x\n"), HasSubstr("the job spec: a list; wants fields"));
  EXPECT_THAT(ErrorOf("hello\n"), HasSubstr("wants fields"));
}

TEST(SpecReader, ReadsAScheduleOfOnesOwnBesideTheJobFile) {
  const TemporaryFolder folder;
  const std::string order = "stage 0: F0 F1 F2 F3 B0 B1 B2 B3\nstage 1: F0 F1 F2 F3 B0 B1 B2 B3\n";
  folder.Write("wave.txt", "# mine\n" + order);
  folder.Write("latin.txt", "stage 0: \xe9\n");
  const auto read = [&](const std::string& schedule) {
    return ParseSpec(Changed("schedule: gpipe", schedule), folder.path() + "/job.yaml");
  };
  const auto error = [&](const std::string& schedule) {
    const auto file = read(schedule);
    return std::string((file.ok() ? ValidateSpecFile(*file).status() : file.status()).message());
  };
  const auto from_file = read("schedule: {file: wave.txt}");
  ASSERT_TRUE(from_file.ok()) << from_file.status();
  EXPECT_EQ(from_file->spec.pipeline().schedule(), v1::SCHEDULE_KIND_OWN);
  EXPECT_EQ(from_file->spec.pipeline().own_schedule(), "# mine\n" + order);
  EXPECT_EQ(error("schedule: {file: wave.txt}"), "");
  EXPECT_EQ(error("schedule: own\n  own_schedule: |\n    " +
                  absl::StrReplaceAll(order, {{"\nstage", "\n    stage"}})),
            "");
  EXPECT_THAT(error("schedule: {file: none.txt}"),
              HasSubstr("job.yaml:15:20: pipeline.schedule.file: "));
  EXPECT_THAT(error("schedule: {file: latin.txt}"), HasSubstr("is not UTF-8 text"));
  for (const std::string both : {"schedule: {file: wave.txt}\n  own_schedule: x",
                                 "own_schedule: x\n  schedule: {file: wave.txt}"}) {
    EXPECT_THAT(error(both), HasSubstr("pipeline.own_schedule: is given, and schedule: {file: PATH} too"));
  }
  folder.Write("empty.txt", " \n");
  EXPECT_THAT(error("schedule: {file: empty.txt}"), HasSubstr("empty.txt is empty; write a line"));
  EXPECT_THAT(error("schedule: {path: wave.txt}"),
              HasSubstr("wants a schedule's name or {file: PATH}"));
  folder.Write("wave.txt", "stage 0: F0 B0\nstage 1: F0 B0\n");
  EXPECT_THAT(error("schedule: {file: wave.txt}"),
              HasSubstr("job.yaml:15:20: pipeline.own_schedule: stage 0: F1 is missing"));
}

TEST(SpecReader, RefusesUnknownEnumValuesAndListsTheKnown) {
  EXPECT_EQ(ErrorOf(Changed("gpipe", "gpype")),
            "job.yaml:15:13: pipeline.schedule: \"gpype\" is not one of gpipe, "
            "one_forward_one_backward, zero_bubble, zero_bubble_2, interleaved, breadth_first, "
            "zero_bubble_v, v_min, own; did you mean \"gpipe\"?");
  EXPECT_THAT(
      ErrorOf(Changed("seed: 1", "precision: float16")),
      StartsWith("job.yaml:2:12: precision: \"float16\" is not one of float32, tensorfloat32, "
                 "bfloat16; did you mean"));
  EXPECT_THAT(ErrorOf(Changed("partition: auto", "partition: unspecified")),
              HasSubstr("is not one of auto, uniform"));
}

TEST(SpecReader, RefusesNumbersThatAreNotFinite) {
  for (const char* number : {".nan", "nan", "inf", "-.inf", "1e999"}) {
    EXPECT_THAT(ErrorOf(Changed("peak: 3.0e-4", absl::StrCat("peak: ", number))),
                StartsWith("job.yaml:12:34: training.learning_rate.cosine.peak:"))
        << number;
  }
}

TEST(SpecReader, TheDomainsErrorsGetAPlaceToo) {
  EXPECT_THAT(ErrorOf(Changed("steps: 6", "steps: 0")), StartsWith("job.yaml:8:3: training.steps"));
  EXPECT_THAT(ErrorOf(Changed("batch_size: 6", "batch_size: -4")), HasSubstr("-4"));
  EXPECT_THAT(ErrorOf(Changed("heads: 2", "heads: 5")),
              StartsWith("job.yaml:4:31: model.gpt.heads"));
  EXPECT_THAT(ErrorOf(Changed("stages: 2", "stages: 99")),
              StartsWith("job.yaml:14:3: pipeline.stages"));
  // A field that is missing is placed at what it is missing from.
  EXPECT_THAT(ErrorOf(Changed("  steps: 6\n", "")), StartsWith("job.yaml:7:1: training.steps"));
}

TEST(SpecReader, RefusesAnEmptyFileAndASecondDocument) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("# nothing\n"), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "---\nname: b\n")), HasSubstr("second document"));
}

TEST(SpecReader, RefusesWhatIsNoYaml) {
  EXPECT_THAT(ErrorOf("a: [1, 2"), StartsWith("job.yaml:1:"));
  EXPECT_THAT(ErrorOf("a: b: c"), HasSubstr("not valid YAML"));
  EXPECT_THAT(ErrorOf("a: \"x"), HasSubstr("not valid YAML"));
  EXPECT_THAT(ErrorOf("a: \xff\xfe"), HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOf(std::string("a: \0b", 5)), HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOf("? [a]\n: b\n"), HasSubstr("plain word"));
  EXPECT_THAT(ErrorOf("name: !!python/object x\n"), HasSubstr("tags"));
}

TEST(SpecReader, DeepNestingIsRefusedBeforeItCanOverflowTheStack) {
  EXPECT_THAT(ErrorOf(absl::StrCat("a: ", std::string(40, '['), std::string(40, ']'))),
              StartsWith("job.yaml:1:35: nested deeper than 32"));
  EXPECT_THAT(ErrorOf(absl::StrCat("a: ", std::string(1 << 19, '['), std::string(1 << 18, ']'))),
              StartsWith("job.yaml:1:"));
  EXPECT_THAT(ErrorOf(std::string(1 << 20, '[')), StartsWith("job.yaml:1:"));
  EXPECT_THAT(ErrorOf(std::string(1 << 20, '{')), StartsWith("job.yaml:1:"));
  std::string dashes;
  for (int i = 0; i < 100000; ++i) dashes += "- ";
  EXPECT_THAT(ErrorOf(dashes), HasSubstr("nested deeper than 32"));
}

TEST(SpecReader, AnAliasBombIsRefusedAtItsFirstAlias) {
  EXPECT_EQ(ErrorOf("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n"),
            "job.yaml:2:8: aliases (*name) are not taken; write the value out");
}

TEST(SpecFileOnDisk, RefusesAHugeFileByItsSize) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("huge.yaml", "#");
  std::filesystem::resize_file(path, 100 << 20);
  const absl::Status status = ReadSpecFile(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("huge.yaml: is larger than 1048576 bytes"));
}

TEST(SpecFileOnDisk, SaysWhyAFileCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_THAT(std::string(ReadSpecFile(folder.File("none.yaml")).status().message()),
              HasSubstr("none.yaml: No such file"));
  EXPECT_THAT(std::string(ReadSpecFile(folder.path()).status().message()),
              HasSubstr("is a folder; name the file in it"));
  EXPECT_THAT(std::string(ReadSpecFile("/dev/zero").status().message()),
              HasSubstr("not a regular"));
}

// A new field of a type that the reader cannot fill would end the client: this finds it first.
void ExpectReadable(const google::protobuf::Descriptor& type, int depth) {
  using google::protobuf::FieldDescriptor;
  if (depth > 8) return;  // residuals nest in themselves
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const auto kind = field.cpp_type();
    if (kind == FieldDescriptor::CPPTYPE_MESSAGE) {
      ExpectReadable(*field.message_type(), depth + 1);
      continue;
    }
    const bool readable = field.is_repeated() ? kind == FieldDescriptor::CPPTYPE_INT64 ||
                                                    kind == FieldDescriptor::CPPTYPE_DOUBLE ||
                                                    kind == FieldDescriptor::CPPTYPE_STRING
                                              : kind != FieldDescriptor::CPPTYPE_INT32 &&
                                                    kind != FieldDescriptor::CPPTYPE_UINT32 &&
                                                    kind != FieldDescriptor::CPPTYPE_FLOAT;
    EXPECT_TRUE(readable) << field.full_name();
  }
}

TEST(SpecReader, ReadsAListOfNumbers) {
  const std::string job =
      "model: {gpt: {layers: 1}, objective: {cross_entropy: {class_weights: WEIGHTS}}}";
  const auto with = [&](const std::string& weights) {
    return absl::StrReplaceAll(job, {{"WEIGHTS", weights}});
  };
  EXPECT_THAT(ErrorOf(with("much")),
              HasSubstr("model.objective.cross_entropy.class_weights: \"much\"; wants a list, "
                        "[...], or one number"));
  EXPECT_THAT(ErrorOf(with(".inf")), HasSubstr("wants a list"));
  EXPECT_THAT(
      ErrorOf(with("[1, x]")),
      HasSubstr("model.objective.cross_entropy.class_weights[1]: \"x\"; wants a finite number"));
  EXPECT_THAT(ErrorOf(with("[1, .inf]")),
              HasSubstr("class_weights[1]: \".inf\"; wants a finite number"));
  EXPECT_THAT(ErrorOf(with("[0, 0.5, 2e3]")), Not(HasSubstr("class_weights")));
}

// The documents say that a mean is a number, or one for each channel.
TEST(SpecReader, TakesOneRealForAListOfOne) {
  const auto read =
      ParseSpec("data: {cifar: {folder: c, mean: 0.5, deviation: [0.25]}}", "job.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->spec.data().cifar().mean(), ElementsAre(0.5));
  EXPECT_THAT(read->spec.data().cifar().deviation(), ElementsAre(0.25));
}

TEST(SpecReader, KnowsEveryTypeOfFieldInTheJobSpec) {
  ExpectReadable(*v1::JobSpec::descriptor(), 0);
}

TEST(SpecReader, ReadsListsOfTexts) {
  const auto read = [](const std::string& freeze) {
    return ParseSpec("training: {steps: 1, freeze: " + freeze + "}", "job.yaml");
  };
  const absl::StatusOr<SpecFile> file = read("['*.bias', model/0000/*]");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->spec.training().freeze_size(), 2);
  EXPECT_EQ(file->spec.training().freeze(0), "*.bias");
  EXPECT_EQ(file->spec.training().freeze(1), "model/0000/*");
  EXPECT_THAT(std::string(read("[{a: b}]").status().message()),
              HasSubstr("training.freeze[0]: a group of fields; wants a text"));
  EXPECT_THAT(std::string(read("everything").status().message()),
              HasSubstr("training.freeze: \"everything\"; wants a list"));
}

TEST(Examples, CanAllBePlanned) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STAGECOACH_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    ++examples;
    const absl::StatusOr<SpecFile> file = ReadSpecFile(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.status();
    const absl::StatusOr<ValidSpecFile> valid = ValidateSpecFile(*file);
    ASSERT_TRUE(valid.ok()) << valid.status();
    const int stages = std::max(2, static_cast<int>(valid->job.pipeline.stages));
    const absl::StatusOr<Plan> plan = MakePlan(valid->job, valid->network, stages, {}, {});
    EXPECT_TRUE(plan.ok()) << entry.path() << ": " << plan.status();
  }
  EXPECT_GE(examples, 6);
}

}  // namespace
}  // namespace stagecoach
