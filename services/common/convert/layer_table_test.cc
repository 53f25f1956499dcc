// The tables of layers and networks in docs/job_files.md are made of the comments in model.proto; STAGECOACH_REWRITE=1
// writes them.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr char kDocument[] = STAGECOACH_SOURCE_DIR "/docs/job_files.md";

std::string TextOf(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The comment before each message ("LinearLayer") and field ("LinearLayer.out") of model.proto.
std::map<std::string, std::string> Comments() {
  const std::regex message_line("message (\\w+) \\{\\}?"), field_line(".* (\\w+) = \\d+;");
  std::map<std::string, std::string> comments;
  std::istringstream file(TextOf(STAGECOACH_SOURCE_DIR "/proto/stagecoach/v1/model.proto"));
  std::string message, comment, line;
  std::smatch match;
  while (std::getline(file, line)) {
    absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
    if (absl::ConsumePrefix(&words, "// ")) {
      absl::StrAppend(&comment, comment.empty() ? "" : " ", words);
      continue;
    }
    if (std::regex_match(line, match, message_line)) {
      message = match[1];
      comments[message] = comment;
    } else if (std::regex_match(line, match, field_line)) {
      comments[absl::StrCat(message, ".", match[1].str())] = comment;
    }
    comment.clear();
  }
  return comments;
}

// Within a sentence: "True leaves the bias out." -> "true leaves the bias out".
std::string InASentence(std::string comment) {
  if (!comment.empty() && comment.back() == '.') comment.pop_back();
  // A capital in its middle makes the first word a name.
  const std::string word = comment.substr(0, comment.find(' '));
  const bool name =
      std::any_of(word.begin() + (word.empty() ? 0 : 1), word.end(), absl::ascii_isupper);
  if (!comment.empty() && !name) comment[0] = absl::ascii_tolower(comment[0]);
  return comment;
}

std::string FieldsText(const Descriptor& message, std::map<std::string, std::string>& comments) {
  std::string text;
  for (int i = 0; i < message.field_count(); ++i) {
    const std::string name = absl::StrCat(message.name(), ".", message.field(i)->name());
    EXPECT_NE(comments[name], "") << name << " has no comment";
    absl::StrAppend(&text, i == 0 ? "" : ". ", "`", message.field(i)->name(),
                    "`: ", InASentence(comments[name]));
  }
  return text.empty() ? "none" : text;
}

// Some kinds share a message: then the choice's own field says what each is.
std::string WhatItIs(const FieldDescriptor& kind, std::map<std::string, std::string>& comments) {
  const Descriptor& choice = *kind.containing_type();
  int users = 0;
  for (int i = 0; i < choice.field_count(); ++i) {
    users += choice.field(i)->message_type() == kind.message_type() ? 1 : 0;
  }
  const std::string name =
      users == 1 ? kind.message_type()->name() : absl::StrCat(choice.name(), ".", kind.name());
  EXPECT_NE(comments[name], "") << name << " has no comment";
  return InASentence(comments[name]);
}

// A row for each kind of `choice`, a message with a field a kind; `head` begins it.
std::string TableOf(const Descriptor& choice, const std::string& head) {
  std::map<std::string, std::string> comments = Comments();
  std::string table = absl::StrCat(head, " what it is | fields |\n| --- | --- | --- |\n");
  const google::protobuf::OneofDescriptor& kinds = *choice.FindOneofByName("kind");
  for (int i = 0; i < kinds.field_count(); ++i) {
    const Descriptor& message = *kinds.field(i)->message_type();
    absl::StrAppend(&table, "| `", kinds.field(i)->name(), "` | ",
                    WhatItIs(*kinds.field(i), comments), " | ", FieldsText(message, comments),
                    " |\n");
  }
  return table;
}

void ExpectTable(const Descriptor& choice, const std::string& head) {
  const std::string document = TextOf(kDocument), table = TableOf(choice, head);
  const size_t begin = document.find(head), end = document.find("\n\n", begin);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << kDocument;
  const char* const rewrite = std::getenv("STAGECOACH_REWRITE");
  if (rewrite != nullptr && std::string(rewrite) == "1") {
    std::ofstream(kDocument) << document.substr(0, begin) + table + document.substr(end + 1);
    return;
  }
  EXPECT_EQ(document.substr(begin, end + 1 - begin), table)
      << kDocument << "; STAGECOACH_REWRITE=1 rewrites it";
}

TEST(JobFilesDocument, HasTheTablesThatTheMessagesComeWith) {
  ExpectTable(*v1::Layer::descriptor(), "| layer |");
  ExpectTable(*v1::Model::descriptor(), "| network |");
  ExpectTable(*v1::Objective::descriptor(), "| objective |");
  ExpectTable(*v1::Data::descriptor(), "| data |");
  ExpectTable(*v1::Optimizer::descriptor(), "| optimizer |");
  ExpectTable(*v1::LearningRate::descriptor(), "| learning rate |");
}

TEST(JobFilesDocument, WordsOfACommentFitIntoASentence) {
  EXPECT_EQ(InASentence("True leaves the bias out."), "true leaves the bias out");
  EXPECT_EQ(InASentence("GELU, tanh form."), "GELU, tanh form");
  EXPECT_EQ(InASentence("ReLU, max(x, 0)."), "ReLU, max(x, 0)");
  EXPECT_EQ(InASentence("x + f(x)."), "x + f(x)");
  EXPECT_EQ(InASentence(""), "");
}

}  // namespace
}  // namespace stagecoach
