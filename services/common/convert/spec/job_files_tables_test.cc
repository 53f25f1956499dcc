// The tables of docs/job_files.md and its pages are made of the comments of the messages;
// STAGECOACH_REWRITE=1 writes them.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/testing/file_text.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "services/common/convert/fields/enum_name.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// The comment before each message ("LinearLayer"), field ("LinearLayer.out") and value of an enum
// ("ResnetForm.RESNET_FORM_SMALL").
std::map<std::string, std::string> ReadComments() {
  const std::regex type_line("(?:message|enum) (\\w+) \\{\\}?"), field_line(".* (\\w+) = \\d+;");
  std::map<std::string, std::string> comments;
  for (const char* const name : {"layers", "networks", "data", "training", "model"}) {
    std::istringstream file(
        FileText(absl::StrCat(STAGECOACH_SOURCE_DIR "/proto/stagecoach/v1/", name, ".proto")));
    std::string type, comment, line;
    std::smatch match;
    while (std::getline(file, line)) {
      absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
      if (absl::ConsumePrefix(&words, "// ")) {
        absl::StrAppend(&comment, comment.empty() ? "" : " ", words);
        continue;
      }
      if (std::regex_match(line, match, type_line)) {
        type = match[1];
        comments[type] = comment;
      } else if (std::regex_match(line, match, field_line)) {
        comments[absl::StrCat(type, ".", match[1].str())] = comment;
      }
      comment.clear();
    }
  }
  return comments;
}

const std::string& CommentOf(const std::string& name) {
  static const auto* const comments = new std::map<std::string, std::string>(ReadComments());
  const auto found = comments->find(name);
  static const auto* const none = new std::string;
  const std::string& comment = found == comments->end() ? *none : found->second;
  EXPECT_NE(comment, "") << name << " has no comment";
  return comment;
}

const std::string& CommentOf(const FieldDescriptor& field) {
  return CommentOf(absl::StrCat(field.containing_type()->name(), ".", field.name()));
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

// "Added to the root; default 1e-8." -> "added to the root" and "1e-8".
std::pair<std::string, std::string> MeaningAndDefault(const std::string& comment) {
  const std::string mark = "; default ";
  const std::string text = InASentence(comment);
  const size_t at = text.rfind(mark);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

std::string Quoted(const std::string& name) { return absl::StrCat("`", name, "`"); }

std::string Row(const std::string& name, const std::string& meaning,
                const std::string& by_default = "") {
  return absl::StrCat(name, " | ", meaning, by_default.empty() ? "" : " | ", by_default, "\n");
}

// The values follow the meaning. That of 0 says "Same as" the default.
void AppendValues(const EnumDescriptor& type, std::string* meaning, std::string* by_default) {
  absl::string_view same = CommentOf(absl::StrCat(type.name(), ".", type.value(0)->name()));
  ASSERT_TRUE(absl::ConsumePrefix(&same, "Same as ") && absl::ConsumeSuffix(&same, ".")) << same;
  *by_default = std::string(same);
  ASSERT_TRUE(EnumNumber(type, *by_default).has_value()) << *by_default;
  for (int i = 1; i < type.value_count(); ++i) {
    absl::StrAppend(meaning, i == 1 ? ". " : "; ", Quoted(ShortEnumName(*type.value(i))), ": ",
                    InASentence(CommentOf(absl::StrCat(type.name(), ".", type.value(i)->name()))));
  }
}

std::string FieldRow(const FieldDescriptor& field, const std::string& prefix = "") {
  auto [meaning, by_default] = MeaningAndDefault(CommentOf(field));
  if (field.enum_type() != nullptr) AppendValues(*field.enum_type(), &meaning, &by_default);
  if (field.type() == FieldDescriptor::TYPE_BOOL && by_default.empty()) by_default = "false";
  return Row(Quoted(prefix + field.name()), meaning, by_default);
}

using Fields = std::vector<const FieldDescriptor*>;

Fields FieldsOf(const Descriptor& message) {
  Fields fields;
  for (int i = 0; i < message.field_count(); ++i) fields.push_back(message.field(i));
  return fields;
}

bool SameField(const Descriptor& message, const FieldDescriptor& field) {
  const FieldDescriptor* other = message.FindFieldByName(field.name());
  return other != nullptr && CommentOf(*other) == CommentOf(field);
}

// Some kinds share a message: then the choice's own field says what each is.
std::string WhatItIs(const FieldDescriptor& kind) {
  int users = 0;
  for (const FieldDescriptor* other : FieldsOf(*kind.containing_type())) {
    users += other->message_type() == kind.message_type() ? 1 : 0;
  }
  return InASentence(users == 1 ? CommentOf(kind.message_type()->name()) : CommentOf(kind));
}

Fields KindsOf(const Descriptor& choice) {
  Fields kinds;
  const google::protobuf::OneofDescriptor& oneof = *choice.FindOneofByName("kind");
  for (int i = 0; i < oneof.field_count(); ++i) kinds.push_back(oneof.field(i));
  return kinds;
}

// Fields that three kinds or more have with the same words.
Fields SharedFields(const Descriptor& choice) {
  Fields shared;
  std::set<std::string> names;
  const Fields kinds = KindsOf(choice);
  for (const FieldDescriptor* kind : kinds) {
    for (const FieldDescriptor* field : FieldsOf(*kind->message_type())) {
      const auto users = std::count_if(kinds.begin(), kinds.end(), [&](const auto* other) {
        return SameField(*other->message_type(), *field);
      });
      if (users >= 3 && names.insert(field->name()).second) shared.push_back(field);
    }
  }
  return shared;
}

// The names of those of `fields` that `message` has, or lacks.
std::string Names(const Fields& fields, const Descriptor& message, bool has) {
  std::vector<std::string> names;
  for (const FieldDescriptor* field : fields) {
    if (SameField(message, *field) == has) names.push_back(Quoted(field->name()));
  }
  return absl::StrJoin(names, ", ");
}

// The kind before this one whose fields this one has too; then they are not said again.
const FieldDescriptor* BaseOf(const Fields& kinds, size_t index) {
  const Descriptor& message = *kinds[index]->message_type();
  const FieldDescriptor* base = nullptr;
  for (size_t i = 0; i < index; ++i) {
    const Fields fields = FieldsOf(*kinds[i]->message_type());
    const bool has_all = std::all_of(fields.begin(), fields.end(),
                                     [&](const auto* field) { return SameField(message, *field); });
    if (!has_all || fields.size() < 2) continue;
    if (base == nullptr || base->message_type()->field_count() < static_cast<int>(fields.size())) {
      base = kinds[i];
    }
  }
  return base;
}

constexpr char kPictures[] = "[of a picture](#pictures)";

std::string RowsOfKind(const Fields& kinds, size_t index, const Fields& shared) {
  const Descriptor& message = *kinds[index]->message_type();
  std::string what = WhatItIs(*kinds[index]);
  const FieldDescriptor* const base = BaseOf(kinds, index);
  if (base != nullptr) absl::StrAppend(&what, "; fields of ", Quoted(base->name()));
  const std::string used = Names(shared, message, true), missing = Names(shared, message, false);
  if (!used.empty()) {
    absl::StrAppend(&what, "; fields ", kPictures);
    if (used.size() < 2 * missing.size()) {
      absl::StrAppend(&what, ": ", used);
    } else if (!missing.empty()) {
      absl::StrAppend(&what, " but ", missing);
    }
  }
  std::string rows = Row(absl::StrCat("**", Quoted(kinds[index]->name()), "**"), what);
  for (const FieldDescriptor* field : FieldsOf(message)) {
    const bool told = base != nullptr && SameField(*base->message_type(), *field);
    const bool is_shared = std::any_of(shared.begin(), shared.end(), [&](const auto* other) {
      return other->name() == field->name() && SameField(message, *other);
    });
    if (!told && !is_shared) rows += FieldRow(*field);
  }
  return rows;
}

std::string TableOfKinds(const Descriptor& choice, const Fields& shared) {
  std::string rows;
  const Fields kinds = KindsOf(choice);
  for (size_t i = 0; i < kinds.size(); ++i) rows += RowsOfKind(kinds, i, shared);
  return rows;
}

std::string TableOfFields(const Fields& fields, const std::string& prefix = "") {
  std::string rows;
  for (const FieldDescriptor* field : fields) {
    const Descriptor* const inner = field->message_type();
    if (inner == nullptr || inner->FindOneofByName("kind") != nullptr) {
      rows += FieldRow(*field, prefix);
    } else {
      rows += TableOfFields(FieldsOf(*inner), absl::StrCat(prefix, field->name(), "."));
    }
  }
  return rows;
}

void ExpectTable(const std::string& page, const std::string& head, const std::string& rows) {
  const std::string path = absl::StrCat(STAGECOACH_SOURCE_DIR "/docs/", page);
  const std::string first_line = head + " | meaning | default\n";
  const std::string table = absl::StrCat(first_line, "--- | --- | ---\n", rows);
  const std::string document = FileText(path);
  const size_t begin = document.find("\n" + first_line) + 1;
  const size_t end = std::min(document.find("\n\n", begin), document.size() - 1);
  ASSERT_NE(begin, 0u) << path << " has no table of " << head;
  const char* const rewrite = std::getenv("STAGECOACH_REWRITE");
  if (rewrite != nullptr && std::string(rewrite) == "1") {
    std::ofstream(path) << document.substr(0, begin) + table + document.substr(end + 1);
    return;
  }
  EXPECT_EQ(document.substr(begin, end + 1 - begin), table)
      << path << "; STAGECOACH_REWRITE=1 rewrites it";
}

TEST(JobFilesDocument, HasTheTablesOfKinds) {
  ExpectTable("job_files/layers.md", "layer", TableOfKinds(*v1::Layer::descriptor(), {}));
  ExpectTable("job_files/networks.md", "network", TableOfKinds(*v1::Model::descriptor(), {}));
  ExpectTable("job_files/networks.md", "objective", TableOfKinds(*v1::Objective::descriptor(), {}));
  ExpectTable("job_files/training.md", "optimizer", TableOfKinds(*v1::Optimizer::descriptor(), {}));
  ExpectTable("job_files/training.md", "learning rate",
              TableOfKinds(*v1::LearningRate::descriptor(), {}));
}

TEST(JobFilesDocument, SaysOnceWhatSourcesOfPicturesShare) {
  const Descriptor& data = *v1::Data::descriptor();
  ExpectTable("job_files/data.md", "data", TableOfKinds(data, SharedFields(data)));
  ExpectTable("job_files/data.md", "of a picture", TableOfFields(SharedFields(data)));
}

TEST(JobFilesDocument, HasTheTablesOfFields) {
  Fields own;
  for (const FieldDescriptor* field : FieldsOf(*v1::JobSpec::descriptor())) {
    static const auto* const pages =
        new std::set<std::string>{"model", "data", "training", "pipeline"};
    if (!pages->contains(field->name())) own.push_back(field);
  }
  ExpectTable("job_files.md", "field", TableOfFields(own));
  ExpectTable("job_files/training.md", "field",
              TableOfFields(FieldsOf(*v1::Training::descriptor()), "training."));
  ExpectTable("job_files/pipeline.md", "field",
              TableOfFields(FieldsOf(*v1::Pipeline::descriptor()), "pipeline."));
}

TEST(JobFilesDocument, WordsOfACommentFitIntoASentence) {
  EXPECT_EQ(InASentence("True leaves the bias out."), "true leaves the bias out");
  EXPECT_EQ(InASentence("GELU, tanh form."), "GELU, tanh form");
  EXPECT_EQ(InASentence("ReLU, max(x, 0)."), "ReLU, max(x, 0)");
  EXPECT_EQ(InASentence("x + f(x)."), "x + f(x)");
  EXPECT_EQ(InASentence(""), "");
}

TEST(JobFilesDocument, TheDefaultOfACommentIsAColumn) {
  using Parts = std::pair<std::string, std::string>;
  EXPECT_EQ(MeaningAndDefault("Added to the root; default 1e-8."),
            (Parts{"added to the root", "1e-8"}));
  EXPECT_EQ(MeaningAndDefault("Even; default 0: width / heads."),
            (Parts{"even", "0: width / heads"}));
  EXPECT_EQ(MeaningAndDefault("Output width."), (Parts{"output width", ""}));
}

}  // namespace
}  // namespace stagecoach
