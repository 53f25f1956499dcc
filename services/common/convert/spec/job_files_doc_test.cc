// docs/job_files.md and its pages name every field of a job.
#include <filesystem>
#include <set>
#include <string>

#include "base/testing/file_text.h"
#include "gtest/gtest.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// All pages together.
std::string Document() {
  std::string text = FileText(STAGECOACH_SOURCE_DIR "/docs/job_files.md");
  for (const auto& page :
       std::filesystem::directory_iterator(STAGECOACH_SOURCE_DIR "/docs/job_files")) {
    text += FileText(page.path());
  }
  return text;
}

// What stands in tables with a row a kind (job_files_tables_test.cc).
bool HasATable(const Descriptor& message) {
  static const auto* const names = new std::set<std::string>{
      "stagecoach.v1.Layer", "stagecoach.v1.Model",     "stagecoach.v1.Objective",
      "stagecoach.v1.Data",  "stagecoach.v1.Optimizer", "stagecoach.v1.LearningRate"};
  return names->contains(message.full_name());
}

// Fields of kinds are named by themselves beside their kind, all others by their path.
void CheckFields(const Descriptor& message, const std::string& path, const std::string& document,
                 std::set<const Descriptor*>* seen) {
  if (!seen->insert(&message).second && HasATable(message)) return;  // a residual has layers again
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const bool in_kind = path.empty() && message.full_name() != "stagecoach.v1.JobSpec";
    const std::string name =
        path.empty() || HasATable(message) ? field.name() : path + "." + field.name();
    const Descriptor* inner = field.message_type();
    const bool shown = document.find("`" + name + "`") != std::string::npos;
    if (inner == nullptr || in_kind || HasATable(message)) {
      EXPECT_TRUE(shown) << "docs/job_files has no `" << name << "` of " << message.full_name();
    }
    if (inner == nullptr) continue;
    CheckFields(*inner, HasATable(message) || HasATable(*inner) ? "" : name, document, seen);
  }
}

TEST(JobFilesDocument, NamesEveryField) {
  const std::string document = Document();
  ASSERT_NE(document.find("# Job files"), std::string::npos);
  std::set<const Descriptor*> seen;
  CheckFields(*v1::JobSpec::descriptor(), "", document, &seen);
  EXPECT_GT(seen.size(), 20u);
}

}  // namespace
}  // namespace stagecoach
