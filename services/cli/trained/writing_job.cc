#include "services/cli/trained/writing_job.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/job_name.h"
#include "base/utf8.h"
#include "plan/data/json_lines.h"
#include "plan/data/parallel_text.h"
#include "plan/data/text.h"

namespace stagecoach {
namespace {

// "translate-my-run" of weights "My.run".
std::string JobNameOf(const WriteSpec& write, const std::string& weights) {
  std::string name =
      absl::StrCat(write.translate.has_value() ? "translate-" : "generate-", weights);
  absl::AsciiStrToLower(&name);
  for (char& c : name) {
    if (!IsJobName(std::string_view(&c, 1))) c = '-';
  }
  return name.substr(0, kMaxJobNameLength);
}

absl::Status SetTokenizer(const std::string& path, DataSpec* data) {
  if (data->kind == TextData::kKind) {
    auto text = data->As<TextData>();
    text.tokenizer = path;
    text.bytes = false;
    *data = text;
  } else if (data->kind == JsonLinesData::kKind) {
    auto documents = data->As<JsonLinesData>();
    documents.tokenizer = path;
    *data = documents;
  } else if (data->kind == ParallelTextData::kKind) {
    auto pairs = data->As<ParallelTextData>();
    pairs.tokenizer = path;
    *data = pairs;
  } else {
    return FieldError("--tokenizer", path,
                      absl::StrCat("the job was trained on data.", data->kind,
                                   ", which has no tokenizer, and stages take no other: leave out "
                                   "--stages and --local-stages"));
  }
  return absl::OkStatus();
}

// `message` with name_of(3) in the place of "FIELD[3]", where that is not empty. field: with the
// bracket.
std::string ReplaceElements(absl::string_view message, absl::string_view field,
                            absl::FunctionRef<std::string(size_t)> name_of) {
  std::string result;
  size_t told = 0;
  for (size_t at = 0; (at = message.find(field, at)) != message.npos; at += field.size()) {
    const size_t begin = at + field.size(), end = message.find(']', begin);
    size_t element = 0;
    if (end == message.npos || !absl::SimpleAtoi(message.substr(begin, end - begin), &element)) {
      continue;
    }
    const std::string name = name_of(element);
    if (name.empty()) continue;
    absl::StrAppend(&result, message.substr(told, at - told), name);
    told = end + 1;
  }
  return absl::StrCat(result, message.substr(told));
}

}  // namespace

absl::StatusOr<JobSpec> MakeWritingJob(JobSpec trained, const WritingJobOptions& options) {
  JobSpec job = std::move(trained);
  job.name = JobNameOf(options.write, options.name);
  job.initialize = options.initialize;
  job.resume = options.resume;
  job.seed = options.seed.value_or(job.seed);
  job.precision = options.precision.value_or(job.precision);
  job.write = options.write;
  if (!options.tokenizer.empty()) RETURN_IF_ERROR(SetTokenizer(options.tokenizer, &job.data));
  const int64_t stages = options.stages, lines = std::ssize(options.write.lines);
  const int64_t all_groups = (lines + options.group_lines - 1) / options.group_lines;
  // As many groups at a time as stages keep all stages at work. A stage has its share of the layers,
  // so they need no more memory than one group on one machine. Groups are of one size, and so of the
  // same lines, however many a mini-batch has.
  job.training.micro_batches = std::min(stages, all_groups);
  job.training.batch_size = job.training.micro_batches * options.group_lines;
  job.training.freeze.clear();
  job.training.until = {};
  job.training.average = {};
  job.pipeline.stages = stages;
  job.pipeline.min_stages = 0;
  job.pipeline.schedule = PipelineSpec().schedule;
  job.pipeline.own_schedule.clear();
  job.pipeline.partition = {};
  job.checkpoint = {.never = true};
  job.snapshot = {};
  job.evaluation = {};
  return job;
}

absl::Status CheckLinesOfJob(const std::vector<std::string>& lines) {
  size_t bytes = 0;
  for (const std::string& line : lines) {
    bytes += line.size() + kBytesBesideLine;
    if (IsUtf8Text(line)) continue;
    return absl::InvalidArgumentError(
        "is no UTF-8 text, and stages get no other; leave out --stages and --local-stages, or "
        "change it");
  }
  if (bytes <= kMostWriteBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("has ", bytes, " bytes; stages take at most ", kMostWriteBytes,
                   " at a time: divide the input, or leave out --stages and --local-stages"));
}

std::string InTheUsersWords(absl::string_view message, const UserWords& words) {
  const auto line = [&](size_t i) {
    return i < words.numbers.size() ? absl::StrCat(words.line, " ", words.numbers[i]) : "";
  };
  const std::string result =
      ReplaceElements(ReplaceElements(message, "write.lines[", line), "write.generate.stops[",
                      [](size_t) { return std::string("--stop"); });
  // Of those that begin at one place the longest is replaced.
  return absl::StrReplaceAll(result, {{"pipeline.stages", words.stages},
                                      {"training.batch_size", "--batch"},
                                      {"raise micro_batches or lower batch_size", "lower --batch"},
                                      {"raise micro_batches", "lower --batch"},
                                      {"write.tag", "--tag"},
                                      {"write.translate", "translate"},  // the command
                                      {"write.generate", "generate"},
                                      {"write.generate.tokens", "--tokens"},
                                      {"write.generate.temperature", "--temperature"},
                                      {"write.generate.top_k", "--top-k"},
                                      {"write.generate.top_p", "--top-p"},
                                      {"write.translate.beam", "--beam"},
                                      {"write.translate.length_penalty", "--length-penalty"},
                                      {"write.translate.tokens", "--tokens"},
                                      // The remedies name two fields at once.
                                      {"write.translate.beam or tokens", "--beam or --tokens"},
                                      {"smaller beam or tokens", "smaller --beam or --tokens"}});
}

}  // namespace stagecoach
