#include "services/cli/spec/yaml_tree.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "services/cli/spec/file_head.h"
#include "services/cli/spec/strange_characters.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace stagecoach {
namespace {

// yaml-cpp counts from 0 and has no position for what is missing.
Position FromMark(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// The only way to end yaml-cpp's parser from within an event; never leaves ParseYaml.
struct Refused {
  Position position;
  std::string message;
  bool may_be_the_end = false;  // yaml-cpp gives the same event where the text ends too early
};

// Where the innermost bracket or quote that a JSON text (first character { or [) leaves open was
// opened; nothing if all are closed, or if it is no JSON. A file that was cut off in writing is the
// likeliest mistake there, and yaml-cpp takes its end for a field without a name.
struct Unclosed {
  char what;
  Position position;
};
std::optional<Unclosed> FindUnclosed(const std::string& text) {
  std::vector<Unclosed> open;
  Position here{1, 1};
  bool in_quotes = false, is_escaped = false;
  for (const char c : text) {
    if (in_quotes) {
      const bool ends = c == '"' && !is_escaped;
      is_escaped = c == '\\' && !is_escaped;
      if (ends) {
        in_quotes = false;
        open.pop_back();
      }
    } else if (c == '{' || c == '[' || (c == '"' && !open.empty())) {
      open.push_back({c, here});
      in_quotes = c == '"';
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back().what != (c == '}' ? '{' : '[')) return std::nullopt;
      open.pop_back();
    } else if (open.empty() && !absl::ascii_isspace(c)) {
      return std::nullopt;  // YAML, where a quote or bracket may be part of a word
    }
    here = c == '\n' ? Position{here.line + 1, 1} : Position{here.line, here.column + 1};
  }
  if (open.empty()) return std::nullopt;
  return open.back();
}

// A field whose value stands at its colon, "seed:1", which YAML takes for one word and then
// stumbles at the next colon: the last one in these lines.
std::optional<Position> FindGlued(const std::string& text, int first, int last) {
  std::optional<Position> found;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (number < first || number > last) continue;
    const size_t begin = line.find_first_not_of(" -{");
    if (begin == absl::string_view::npos) continue;
    size_t end = begin;
    while (end < line.size() && (absl::ascii_isalnum(line[end]) || line[end] == '_')) ++end;
    const bool is_glued = end > begin && end + 1 < line.size() && line[end] == ':' &&
                          !absl::ascii_isspace(line[end + 1]) && line[end + 1] != '/';
    if (is_glued) found = Position{number, static_cast<int>(end) + 2};
  }
  return found;
}

// The error for a text that does not parse: that it ends too early, or else `message`.
absl::Status ParseError(const std::string& text, const std::string& file, Position position,
                        const std::string& message) {
  // yaml-cpp goes on behind such a character and stumbles in this line or the next.
  RETURN_IF_ERROR(FindStrange(text, file, position.line - 1, position.line));
  const std::optional<Unclosed> unclosed = FindUnclosed(text);
  if (const auto glued = FindGlued(text, position.line - 1, position.line); glued.has_value()) {
    return ErrorAt(file, *glued, "a blank has to stand here, behind the colon of a field");
  }
  if (!unclosed.has_value()) return ErrorAt(file, position, message);
  return ErrorAt(file, unclosed->position,
                 absl::StrCat("the file ends before the ", std::string(1, unclosed->what),
                              " that stands here is closed; was it cut off?"));
}

// Builds the tree from events. Open containers wait on a stack and move into their parent at their
// end.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(int max_depth) : max_depth_(max_depth) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    YamlNode node;
    node.position = FromMark(mark);
    Add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{FromMark(mark), "aliases (*name) are not taken; write the value out"};
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.position = FromMark(mark);
    node.text = value;
    RefuseTag(tag, node.position);
    Add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kList, mark, tag);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag);
  }
  void OnMapEnd() override { Close(); }

  std::optional<YamlNode> TakeRoot() { return std::exchange(root_, std::nullopt); }

 private:
  struct Container {
    YamlNode node;
    std::set<std::string> names;             // of a map's fields so far
    std::optional<YamlField> waiting_field;  // a name whose value is still to come
  };

  // Plain scalars carry "?" and quoted ones "!"; anything else was written by the user as !!tag.
  static void RefuseTag(const std::string& tag, Position position) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Refused{position, absl::StrCat("tags (", tag, ") are not taken")};
  }

  static Refused NotAName(Position position) {
    return {position, "a field name must be a plain word", /*may_be_the_end=*/true};
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    const Position position = FromMark(mark);
    RefuseTag(tag, position);
    if (static_cast<int>(open_.size()) >= max_depth_) {
      throw Refused{position, absl::StrCat("nested deeper than ", max_depth_, " levels")};
    }
    if (WantsName()) throw NotAName(position);
    Container container;
    container.node.kind = kind;
    container.node.position = position;
    open_.push_back(std::move(container));
  }

  void Close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    Add(std::move(node));
  }

  bool WantsName() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::kMap &&
           !open_.back().waiting_field.has_value();
  }

  void Add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (WantsName()) {
      AddName(node);
    } else if (open_.back().node.kind == YamlNode::Kind::kMap) {
      open_.back().waiting_field->value = std::move(node);
      open_.back().node.fields.push_back(std::move(*open_.back().waiting_field));
      open_.back().waiting_field.reset();
    } else {
      open_.back().node.items.push_back(std::move(node));
    }
  }

  void AddName(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kScalar || node.text.empty()) {
      throw NotAName(node.position);
    }
    if (!open_.back().names.insert(node.text).second) {
      throw Refused{node.position, absl::StrCat(node.text, ": given twice; keep one")};
    }
    YamlField field;
    field.name = node.text;
    field.position = node.position;
    open_.back().waiting_field = std::move(field);
  }

  const int max_depth_;
  std::vector<Container> open_;
  std::optional<YamlNode> root_;
};

absl::StatusOr<YamlNode> ParseChecked(const std::string& text, const std::string& file,
                                      const YamlLimits& limits) {
  std::istringstream stream(text);
  TreeBuilder builder(limits.depth);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      return ErrorAt(file, {}, "is empty; a job spec begins with 'name: ...'");
    }
    std::optional<YamlNode> root = builder.TakeRoot();
    CHECK(root.has_value()) << "every document ends with its root";
    TreeBuilder second(limits.depth);
    if (parser.HandleNextDocument(second)) {
      const std::optional<YamlNode> extra = second.TakeRoot();
      return ErrorAt(file, extra.has_value() ? extra->position : Position{},
                     "a second document begins here; a file holds one");
    }
    return std::move(*root);
  } catch (const Refused& refused) {
    if (!refused.may_be_the_end) return ErrorAt(file, refused.position, refused.message);
    return ParseError(text, file, refused.position, refused.message);
  } catch (const YAML::Exception& error) {
    return ParseError(text, file, FromMark(error.mark),
                      absl::StrCat("not valid YAML: ", error.msg));
  }
}

std::string TooBig(size_t max_bytes) {
  return absl::StrCat("is larger than ", max_bytes, " bytes, the limit of a job spec");
}

}  // namespace

std::string KindInstead(const std::string& text) {
  const std::optional<FileKind> kind = FileKindOf(text);
  if (!kind.has_value() || kind->form == FileKind::Form::kText || text.empty()) return "";
  return absl::StrCat("is ", OtherKindText(text, "a job file"));
}

absl::Status ErrorAt(const std::string& file, Position position, const std::string& message) {
  const std::string place =
      position.line == 0 ? "" : absl::StrCat(":", position.line, ":", position.column);
  // It may quote what stands in the file.
  return absl::InvalidArgumentError(absl::StrCat(ShownName(file), place, ": ", ShownText(message)));
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrorAt(path, {}, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return ErrorAt(path, {}, "is a folder; name the file in it");
  if (!S_ISREG(info.st_mode)) return ErrorAt(path, {}, "is not a regular file");
  if (static_cast<uint64_t>(info.st_size) > max_bytes) {
    const std::string kind = KindInstead(FileHead(path).value_or(""));
    return ErrorAt(path, {}, kind.empty() ? TooBig(max_bytes) : kind);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return ErrorAt(path, {}, std::strerror(errno));
  return ReadSmallStream(file, path, max_bytes);
}

absl::StatusOr<std::string> ReadSmallStream(std::istream& stream, const std::string& name,
                                            size_t max_bytes) {
  // One byte more than allowed: a file may have grown since it was measured, a pipe has no size.
  std::string text(max_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return ErrorAt(name, {}, "cannot be read");
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > max_bytes) return ErrorAt(name, {}, TooBig(max_bytes));
  return text;
}

absl::StatusOr<YamlNode> ParseYaml(const std::string& text, const std::string& file,
                                   const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    return ErrorAt(file, {}, absl::StrCat("is larger than ", limits.bytes, " bytes"));
  }
  // proto3 strings hold UTF-8 only, and yaml-cpp would guess an encoding from the first bytes.
  if (!IsUtf8Text(text)) {
    const std::string kind = KindInstead(text);
    return ErrorAt(file, {}, kind.empty() ? "is not UTF-8 text" : kind);
  }
  return ParseChecked(text, file, limits);
}

}  // namespace stagecoach
