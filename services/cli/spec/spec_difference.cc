#include "services/cli/spec/spec_difference.h"

#include <google/protobuf/util/message_differencer.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "plan/data/bucket_path.h"
#include "plan/data/data_set_path.h"
#include "plan/data/data_sets_of.h"
#include "plan/job/data_kinds.h"
#include "services/cli/spec/message_reader.h"
#include "services/common/convert/fields/enum_name.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

// With the paths in buckets of `other` where these are the same objects in a data set.
JobSpec WithBucketPaths(JobSpec spec, const JobSpec& other) {
  std::map<std::string, std::string> buckets;  // by field
  for (const ClusterPath& named : PathsInBuckets(other)) buckets[named.field] = named.path;
  std::map<std::string, std::string> texts;  // by path
  for (const ClusterPath& named : PathsInDataSets(spec)) {
    const absl::StatusOr<DataSetPath> path = ParseDataSetPath(named.path);
    const absl::StatusOr<BucketPath> bucket = ParseBucketPath(buckets[named.field]);
    if (path.ok() && bucket.ok() && bucket->PathInSet() == path->path) {
      texts[named.path] = buckets[named.field];
    }
  }
  const auto change = [&texts](const std::string& path) {
    const auto text = texts.find(path);
    return text == texts.end() ? path : text->second;
  };
  if (!texts.empty()) ChangeDataPaths(change, &spec.data);
  spec.initialize.from = change(spec.initialize.from);
  return spec;
}

// With every default written out; a spec that the domain cannot say stays as it is.
v1::JobSpec FullForm(const v1::JobSpec& spec, const v1::JobSpec& other) {
  const absl::StatusOr<JobSpec> domain = FromProto(spec), others = FromProto(other);
  if (!domain.ok()) return spec;
  return ToProto(others.ok() ? WithBucketPaths(*domain, *others) : *domain);
}

// "gpipe" of SCHEDULE_GPIPE, as job files say it; anything else as it is.
std::string JobFileValue(const std::string& value) {
  const auto* const found = google::protobuf::DescriptorPool::generated_pool()->FindEnumValueByName(
      absl::StrCat(v1::JobSpec::descriptor()->file()->package(), ".", value));
  return found == nullptr ? value : ShortEnumName(*found);
}

std::string JobFileValues(absl::string_view values) {
  const std::vector<std::string> words = absl::StrSplit(values, " -> ");
  return absl::StrJoin(words, " -> ", [](std::string* out, const std::string& word) {
    out->append(JobFileValue(word));
  });
}

// Of one of protobuf's lines: "modified: training.steps: 60 -> 61".
std::string PeoplesLine(absl::string_view line) {
  const bool added = absl::ConsumePrefix(&line, "added: ");
  const bool deleted = absl::ConsumePrefix(&line, "deleted: ");
  absl::ConsumePrefix(&line, "modified: ");
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(": ", 1));
  return absl::StrCat("  ", parts.first, ": ", added ? "nothing -> " : "",
                      JobFileValues(parts.second), deleted ? " -> nothing" : "", "\n");
}

}  // namespace

std::string SpecDifference(const v1::JobSpec& from, const v1::JobSpec& to) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  // A zero is a value: "seed: 0 -> 7", not a field that was not there.
  differencer.set_message_field_comparison(google::protobuf::util::MessageDifferencer::EQUIVALENT);
  differencer.ReportDifferencesToString(&differences);
  differencer.Compare(FullForm(from, to), FullForm(to, from));
  std::string text;
  for (const absl::string_view line : absl::StrSplit(differences, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, PeoplesLine(line));
  }
  return text;
}

}  // namespace stagecoach
