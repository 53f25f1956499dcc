// docs/job_files.md names every field of a job: who adds one is told here.
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string Document() {
  const std::ifstream file(STAGECOACH_SOURCE_DIR "/docs/job_files.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Layers and networks, which stand in tables with a row a kind (layer_table_test.cc).
bool HasATable(const Descriptor& message) {
  return message.full_name() == "stagecoach.v1.Layer" ||
         message.full_name() == "stagecoach.v1.Model" ||
         message.full_name() == "stagecoach.v1.Objective";
}

// Fields of layers and networks are named by themselves beside their kind, all others by their path.
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
      EXPECT_TRUE(shown) << "docs/job_files.md has no `" << name << "` of " << message.full_name();
    }
    if (inner == nullptr) continue;
    // The forms of a learning rate share their fields, which one of them shows.
    if (inner->full_name() == "stagecoach.v1.DecayingRate" && field.name() != "cosine") continue;
    CheckFields(*inner, HasATable(message) || HasATable(*inner) ? "" : name, document, seen);
  }
}

TEST(JobFilesDocument, NamesEveryField) {
  const std::string document = Document();
  ASSERT_NE(document.find("# Job files"), std::string::npos);
  std::set<const Descriptor*> seen;
  // `cosine` stands for the rates that decay; what they share stands with `constant`.
  std::string text = document;
  for (const char* shared : {"peak", "warmup_steps"}) {
    text += std::string("`training.learning_rate.cosine.") + shared + "`";
  }
  CheckFields(*v1::JobSpec::descriptor(), "", text, &seen);
  EXPECT_GT(seen.size(), 20u);
}

}  // namespace
}  // namespace stagecoach
