// YamlTree: a small YAML or JSON text as a tree in which every node knows its place in the text.
// Limits hold while the text is parsed, before a tree exists. yaml-cpp's own loader overflows the
// stack on deep nesting and expands aliases. So its event parser feeds this tree instead.
// Threads:   pure functions.
// Units and shapes: lines and columns count from 1.
// Errors:    INVALID_ARGUMENT "file:line:column: what is wrong". Refused: more than the limits, two
//            fields of one name, aliases, a second document, text that is not UTF-8.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_YAML_TREE_H_
#define STAGECOACH_SERVICES_CLI_SPEC_YAML_TREE_H_

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

struct Position {
  int line = 0, column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

struct YamlField;

struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Position position;
  std::string text;               // kScalar
  std::vector<YamlNode> items;    // kList
  std::vector<YamlField> fields;  // kMap, in the order of the file
};

struct YamlField {
  std::string name;
  Position position;  // of the name
  YamlNode value;
};

struct YamlLimits {
  size_t bytes = size_t{1} << 20;
  int depth = 32;
};

// "file:line:column: message"; without a position "file: message".
absl::Status ErrorAt(const std::string& file, Position position, const std::string& message);

// "is a zip archive, not a job file; unpack it first"; empty for text and for unknown kinds.
std::string KindInstead(const std::string& text);

// The text of a file of at most `max_bytes`; the size is checked before anything is read. `name`
// stands in errors. INVALID_ARGUMENT also if the file is missing, a folder or not readable: the
// user named it.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes);

// The same for a stream, whose size is unknown; `name` stands in errors.
absl::StatusOr<std::string> ReadSmallStream(std::istream& stream, const std::string& name,
                                            size_t max_bytes);

absl::StatusOr<YamlNode> ParseYaml(const std::string& text, const std::string& file,
                                   const YamlLimits& limits);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_YAML_TREE_H_
