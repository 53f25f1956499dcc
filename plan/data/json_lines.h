// json_lines: documents in files with one JSON object a line, plain or gzip. A field of the object
// holds the document. Documents follow each other, each with the end token behind it. Gives the
// inputs of plan/data/token_inputs.h.
//   Tokens are the ids of a tokenizer, whose end id is the end token; without one they are the
//   bytes, and the end token is 0, which no document has. Empty documents are left out.
#ifndef STAGECOACH_PLAN_DATA_JSON_LINES_H_
#define STAGECOACH_PLAN_DATA_JSON_LINES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace stagecoach {

inline constexpr size_t kMostTokenFiles = 1024;

struct JsonLinesData {
  static constexpr const char* kKind = "json_lines";
  std::vector<std::string> files;
  std::string field = "text";     // of an object
  std::string tokenizer;          // its file (stage/tokens/tokenizer.h); empty: bytes are tokens
  std::vector<std::string> test;  // to evaluate with; none: a part of the others
  bool packed = false;            // gives document_starts
  double masked = 0;              // share of masked tokens; 0: none
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Texts("files", files, kMostTokenFiles, "must name a file");
    visit.Text("field", field, "must name the field that holds the document");
    visit.Text("tokenizer", tokenizer);
    visit.Texts("test", test, kMostTokenFiles, "must name a file");
    visit.Flag("packed", packed);
    visit.Rate("masked", masked);
  }
};

// Of documents of bytes.
inline constexpr int32_t kEndOfBytes = 0;

// Whether the beginning of a file may be that of JSON lines, plain or gzip. INVALID_ARGUMENT with
// `where` in front: `data.json_lines.files[0] = "a"`.
absl::Status CheckJsonLinesHead(const std::string& where, std::string_view head);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_JSON_LINES_H_
