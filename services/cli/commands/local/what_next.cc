#include "services/cli/commands/local/what_next.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "plan/data/parallel_text.h"
#include "services/cli/pictures/picture_network.h"
#include "services/cli/trained/decoding_network.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

// The command that uses such weights; empty where none does.
std::string UseOf(const JobSpec& spec, const std::string& weights) {
  if (NetworkThatWrites(Writes::kTranslations, spec).ok()) {
    std::vector<std::string> tags = spec.data.As<ParallelTextData>().tags;
    std::erase(tags, "");
    return absl::StrCat("echo 'A sentence.' | stagecoach translate ", weights,
                        tags.empty() ? "" : absl::StrCat(" --tag ", ShellWord(tags.front())));
  }
  const bool text = spec.data.kind == "text" || spec.data.kind == "json_lines";
  if (text && NetworkThatWrites(Writes::kText, spec).ok()) {
    return absl::StrCat("stagecoach generate ", weights, " --prompt 'The '");
  }
  if (PictureNetwork::Check(spec, PictureAnswer::kClass).ok()) {
    return absl::StrCat("stagecoach classify --weights ", weights, " PICTURE");
  }
  if (PictureNetwork::Check(spec, PictureAnswer::kClassOfEachPixel).ok()) {
    return absl::StrCat("stagecoach segment --weights ", weights, " --out masks PICTURE");
  }
  return "";
}

}  // namespace

std::string WhatNext(const v1::Job& job, const std::string& state_folder) {
  std::string text =
      absl::StrCat("to see its page again:\n  stagecoach ui ", ShellWord(state_folder));
  if (job.weights_folder().empty()) return text;
  const absl::StatusOr<JobSpec> spec = FromProto(job.spec());
  if (!spec.ok()) return text;  // it ran, so this is a newer coordinator's
  const std::string use = UseOf(*spec, ShellWord(job.weights_folder()));
  if (!use.empty()) absl::StrAppend(&text, "\nto use its weights:\n  ", use);
  return text;
}

std::string ShellWord(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_@%+=:,./-") == std::string::npos;
  if (plain) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace stagecoach
