// Keeps docs/metrics.md and the list of names equal. STAGECOACH_REWRITE=1 writes the table anew.
#include "services/common/observe/metric_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/testing/file_text.h"

namespace stagecoach {
namespace {

constexpr char kBegin[] = "<!-- table: begin -->\n";
constexpr char kEnd[] = "<!-- table: end -->\n";

const std::string kMetricsDocument = absl::StrCat(STAGECOACH_SOURCE_DIR, "/docs/metrics.md");

const char* TypeName(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "";
}

std::string Table() {
  std::string table = "| name | type | unit | labels | by | meaning |\n|---|---|---|---|---|---|\n";
  for (const MetricDefinition* metric : AllMetrics()) {
    const std::string labels = absl::StrReplaceAll(metric->labels, {{",", ", "}});
    absl::StrAppend(&table, "| `", metric->name, "` | ", TypeName(metric->type), " | ",
                    metric->unit, " | ", labels.empty() ? "–" : labels, " | ", metric->by, " | ",
                    metric->help, " |\n");
  }
  return table;
}

TEST(MetricNames, DocumentListsExactlyTheExportedNames) {
  std::string document = FileText(kMetricsDocument);
  const size_t begin = document.find(kBegin), end = document.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << kMetricsDocument;
  const size_t from = begin + sizeof(kBegin) - 1;
  if (std::getenv("STAGECOACH_REWRITE") != nullptr) {
    document.replace(from, end - from, Table());
    std::ofstream(kMetricsDocument, std::ios::trunc) << document;
    return;
  }
  EXPECT_EQ(document.substr(from, end - from), Table())
      << "run this test with STAGECOACH_REWRITE=1 and read the difference";
}

TEST(MetricNames, FollowTheRules) {
  std::set<std::string> names;
  const auto well_formed = [](const std::string& name) {
    return !name.empty() && absl::ascii_islower(name.front()) &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  };
  for (const MetricDefinition* metric : AllMetrics()) {
    const std::string name = metric->name;
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    EXPECT_TRUE(well_formed(name)) << name;
    EXPECT_TRUE(absl::StartsWith(name, "stagecoach_") || absl::StartsWith(name, "grpc_server_") ||
                absl::StartsWith(name, "process_"))
        << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"), metric->type == MetricType::kCounter) << name;
    for (const char* suffix : {"_count", "_sum", "_bucket"}) {
      EXPECT_FALSE(absl::EndsWith(name, suffix)) << name << ": histograms add " << suffix;
    }
    const std::string labels = metric->labels;
    EXPECT_FALSE(absl::StrContains(labels, "step")) << name << ": a step is never a label";
    const bool by_job = absl::StrContains(labels, "job_id");
    EXPECT_FALSE(by_job &&
                 (std::string(metric->by) != "C" || metric->type == MetricType::kHistogram))
        << name << ": job_id only on the coordinator's series, never on histograms";
    EXPECT_NE(std::string(metric->help), "") << name;
  }
}

}  // namespace
}  // namespace stagecoach
