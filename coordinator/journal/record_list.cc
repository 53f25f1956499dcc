#include "coordinator/journal/record_list.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "coordinator/job/view/written_json.h"

namespace stagecoach {
namespace {

// "accuracy=0.91 top_5=0.99"
std::string MeasuresText(const std::vector<Measure>& measures) {
  std::string text;
  for (const Measure& measure : measures) {
    absl::StrAppendFormat(&text, "%s%s=%.17g", text.empty() ? "" : " ", measure.name,
                          measure.value);
  }
  return text;
}

std::vector<Measure> ReadMeasures(const std::string& text) {
  std::vector<Measure> measures;
  for (const absl::string_view entry : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    double value = 0;
    if (absl::SimpleAtod(parts.second, &value)) measures.push_back({parts.first, value});
  }
  return measures;
}

}  // namespace

std::string ListText(const JobRecord& record) {
  return record.kind == JobRecord::Kind::kWritten ? EncodeWritten(record.written)
                                                  : MeasuresText(record.measures);
}

absl::Status ReadList(const std::string& text, JobRecord* record) {
  if (record->kind != JobRecord::Kind::kWritten) {
    record->measures = ReadMeasures(text);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(record->written, DecodeWritten(text));
  return absl::OkStatus();
}

}  // namespace stagecoach
